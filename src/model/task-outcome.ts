/** The outcome of a task as plain data, for reports and the library. */
import type { CryptodlError } from './errors.js';
import type { AbsenceReason } from './absence-reasons.js';
import type { ArchiveObject, Cadence, Market, Series } from './task.js';
import { periodText } from './calendar.js';
import type { Written, Skipped, Outcome, OutcomeKind } from './outcome.js';

interface TaskIdentity {
  readonly market: Market;
  readonly dataset: string;
  readonly interval?: string;
  readonly symbol: string;
  readonly cadence: Cadence;
  /** `2024-01-15` or `2024-01`. */
  readonly period: string;
  /** Name of the object in the archive, or `rest/…` for rows from REST. */
  readonly key: string;
}

/** One planned object and its outcome. Plain data: it can be converted to JSON and back. */
export type TaskOutcome = TaskIdentity &
  (
    | ({ readonly outcome: 'ok' | 'partial' } & Written)
    | Skipped<'outcome'>
    | { readonly outcome: 'absent'; readonly reason: AbsenceReason }
    | ({ readonly outcome: 'failed' } & Readonly<
        Pick<CryptodlError, 'code' | 'retryable' | 'attempts' | 'message'>
      >)
  );

export function taskOutcome(series: Series, object: ArchiveObject, outcome: Outcome): TaskOutcome {
  if (outcome.kind === 'failed') {
    const { code, retryable, attempts, message } = outcome.error;
    return Object.assign(identified('failed', series, object), { code, retryable, attempts, message });
  }
  if (outcome.kind === 'absent')
    return Object.assign(identified('absent', series, object), { reason: outcome.reason });
  if (outcome.kind === 'skipped') {
    const { withdrawn, archiveFailed } = outcome;
    const skipped = identified('skipped', series, object);
    if (archiveFailed !== undefined) return Object.assign(skipped, { archiveFailed });
    return withdrawn === true ? Object.assign(skipped, { withdrawn }) : skipped;
  }
  const { kind, ...written } = outcome;
  return Object.assign(identified(kind, series, object), written);
}

/** Fields are listed one by one: nested spreads took a tenth of the time of a task without its download (bench/NOTES.md). */
function identified<O extends OutcomeKind>(
  outcome: O,
  { market, dataset, interval, symbol }: Series,
  { period, key }: ArchiveObject,
): { outcome: O } & TaskIdentity {
  const { cadence } = period;
  return interval === undefined
    ? { outcome, market, dataset, symbol, cadence, period: periodText(period), key }
    : { outcome, market, dataset, interval, symbol, cadence, period: periodText(period), key };
}
