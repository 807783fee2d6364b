/** How many rows the objects of a series must have, and which times they may have. */
import { rowSeconds, type DatasetSpec } from '../exchange/exchange-spec.js';
import { startOfDay } from '../model/calendar.js';
import { DAY_SECONDS, DAY_MS } from '../model/units.js';
import type { Series, SourceObject, Period } from '../model/task.js';

/** The number of rows that a period must have; undefined for rows at irregular times, bars longer than a day, and a period that is not over. */
export function expectedRows(
  spec: DatasetSpec,
  { interval }: Series,
  { period, rest }: SourceObject,
): number | undefined {
  const seconds = rowSeconds(spec, interval);
  if (seconds === undefined || rest?.open === true) return undefined;
  return ((period.to - period.from) * DAY_SECONDS) / seconds;
}

/** Length of a bar in seconds; undefined for datasets without bars, and for bars longer than a day, which may open outside their period. */
export const barSeconds = (spec: DatasetSpec, { interval }: Series): number | undefined =>
  interval === undefined ? undefined : rowSeconds(spec, interval);

/** Whether an object has so many bars that they must be of a shorter interval. Times off the grid do not prove this: the archive has some. */
export function hasShorterBars(
  spec: DatasetSpec,
  series: Series,
  object: SourceObject,
  rows: number,
): boolean {
  const expected = barSeconds(spec, series) === undefined ? undefined : expectedRows(spec, series, object);
  return expected !== undefined && rows > 2 * expected;
}

/** Bars longer than a day may open before the period in which the archive publishes them. Lengths in days. */
export const LONG_BAR_DAYS: Readonly<Record<string, number>> = { '3d': 3, '1w': 7, '1mo': 31 };

/** The first and the last valid time of rows of a period, in epoch milliseconds, inclusive. */
export function legalTimeRange(
  spec: Pick<DatasetSpec, 'edgeSeconds' | 'dayStartMs'>,
  interval: string | undefined,
  { from, to }: Pick<Period, 'from' | 'to'>,
): { readonly firstMs: number; readonly lastMs: number } {
  const edgeMs = spec.edgeSeconds * 1000;
  const earlierMs = (LONG_BAR_DAYS[interval ?? ''] ?? 0) * DAY_MS;
  return { firstMs: startOfDay(from, spec) - earlierMs - edgeMs, lastMs: startOfDay(to, spec) + edgeMs };
}

/** Whether the first and the last row are within the valid time range of the period. Instants are ISO 8601. */
export function isWithinPeriod(
  spec: Pick<DatasetSpec, 'edgeSeconds' | 'dayStartMs'>,
  interval: string | undefined,
  period: Pick<Period, 'from' | 'to'>,
  rows: { readonly first: string; readonly last: string },
): boolean {
  const legal = legalTimeRange(spec, interval, period);
  return Date.parse(rows.first) >= legal.firstMs && Date.parse(rows.last) <= legal.lastMs;
}
