/** Which times the rows of a period may have: one rule for the writer and for `verify --deep`. */
import { DAY_MS } from '../calendar.js';
import type { Period } from '../task.js';
import type { DatasetSpec } from '../venue/venue.js';

/** The archive publishes bars that are longer than a day beside the period in which they open. */
const LONG_BAR_DAYS: Readonly<Record<string, number>> = { '3d': 3, '1w': 7, '1mo': 31 };

/** The first and the last legal time in epoch milliseconds, both included. */
export function legalTimes(
  { edgeSeconds }: Pick<DatasetSpec, 'edgeSeconds'>,
  interval: string | undefined,
  { from, to }: Pick<Period, 'from' | 'to'>,
): { readonly first: number; readonly last: number } {
  const edgeMs = edgeSeconds * 1000;
  const earlier = (LONG_BAR_DAYS[interval ?? ''] ?? 0) * DAY_MS;
  return { first: from * DAY_MS - earlier - edgeMs, last: to * DAY_MS + edgeMs };
}

/** Instants in ISO 8601, as manifest lines have them. */
export function isWithinPeriod(
  spec: Pick<DatasetSpec, 'edgeSeconds'>,
  interval: string | undefined,
  period: Pick<Period, 'from' | 'to'>,
  rows: { readonly first: string; readonly last: string },
): boolean {
  const legal = legalTimes(spec, interval, period);
  return Date.parse(rows.first) >= legal.first && Date.parse(rows.last) <= legal.last;
}
