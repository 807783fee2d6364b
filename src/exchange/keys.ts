/** Functions for object keys, the same for every exchange. */
import { parsePeriod, periodText } from '../model/calendar.js';
import type { SourceObject, Cadence, PartitionPlan, Period, Series } from '../model/task.js';
import type { Exchange } from './exchange.js';
import type { DatasetSpec } from './exchange-spec.js';

export const fileOfKey = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

const SURROGATE = /[\ud800-\udfff]/;

/** The order of UTF-8 bytes, in which listings are sorted. */
export function byKey(a: string, b: string): number {
  // Without surrogates, it is the order of the UTF-16 units.
  if (!SURROGATE.test(a) && !SURROGATE.test(b)) return a < b ? -1 : Number(a > b);
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** URL path of a key: every segment percent-encoded as UTF-8. */
export function urlPathOf(key: string): string {
  // A fast path: nearly all keys need no encoding.
  if (/^[\w./-]*$/.test(key)) return key;
  return key.split('/').map(encodeURIComponent).join('/');
}

/** The key of a period of rows from REST, in place of an archive key. */
export const restKey = (series: Series, period: Period): string => keyWith('rest', series, period);

/** The key of a period of rows that the program made from other rows of the lake, in place of an archive key. */
export const madeKey = (series: Series, period: Period): string => keyWith('made', series, period);

function keyWith(first: string, { market, dataset, interval, symbol }: Series, period: Period): string {
  return [first, market, dataset, interval, symbol, periodText(period)]
    .filter((part) => part !== undefined)
    .join('/');
}

/** The period of an object of the series, by its key; undefined for any other text. */
export function periodOf(
  { exchange, series }: { readonly exchange: Pick<Exchange, 'archive'>; readonly series: Series },
  key: string,
): Period | undefined {
  for (const cadence of ['daily', 'monthly'] as const) {
    const period = exchange.archive.periodOf(series, cadence)(key);
    if (period !== undefined) return period;
    const last = parsePeriod(cadence, key.slice(key.lastIndexOf('/') + 1));
    if (last !== undefined && [restKey, madeKey].some((keyOf) => keyOf(series, last) === key)) return last;
  }
  return undefined;
}

/** True for a monthly object of the archive that daily objects may replace: the dataset has them, and `--cadence` is `auto`. */
export function hasDays(
  spec: DatasetSpec | undefined,
  { series, settings }: Pick<PartitionPlan, 'series' | 'settings'>,
  { period, rest }: SourceObject,
): boolean {
  return (
    rest === undefined &&
    period.cadence === 'monthly' &&
    settings.cadence === 'auto' &&
    spec !== undefined &&
    cadencesOf(spec, series.interval).includes('daily')
  );
}

/** Cadences that the dataset has for this interval and that `--cadence` allows. */
export function cadencesOf(
  spec: DatasetSpec,
  interval: string | undefined,
  allowed: 'auto' | Cadence = 'auto',
): readonly Cadence[] {
  const { intervals } = spec;
  return spec.cadences.filter(
    (cadence) =>
      (allowed === 'auto' || cadence === allowed) &&
      (intervals === undefined || interval === undefined || intervals[cadence].includes(interval)),
  );
}
