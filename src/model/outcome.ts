/** What became of a task, and how everybody gets to see it. */
import type { CryptodlError, ErrorCode } from './errors.js';
import type { AbsenceReason, ArchiveObject, Cadence, Market, Revision, Series } from './task.js';
import { periodText } from './calendar.js';

interface Written {
  readonly rows?: number;
  /** Rows that the period must have, where that is known. */
  readonly expectedRows?: number;
  /** Rows of the held revision, which stay: this one lacks some of them and was not taken. */
  readonly keptRows?: number;
  /** Those of them that this one lacks, by id or time, where that was counted. */
  readonly lackedRows?: number;
  /** ISO 8601, of the first and the last row. */
  readonly first?: string;
  readonly last?: string;
  /** Where rows are missing, as far as that is known: ISO instants `[from, to)`. */
  readonly gaps?: readonly (readonly [string, string])[];
  /** Exact duplicates within the object that were dropped. */
  readonly duplicates?: number;
  /** Rows with the id or the bar of another row of the object and other values, or of a bar beside the period. */
  readonly idConflicts?: number;
  /** Of the zip. */
  readonly bytes: number;
  /** No digest was published: only the zip itself vouches for its content. */
  readonly unverified: boolean;
  /** No digest was published: the listing's ETag vouches for it. */
  readonly noSidecar?: true;
  /** Size and ETag vouch for it; its sidecar names another digest. */
  readonly staleSidecar?: true;
  /** It comes from REST because the archive did not answer: how the archive failed. The next run asks the archive again. */
  readonly archiveFailed?: ErrorCode;
  /** It has changed upstream: what was held before, and the digest that it has now. */
  readonly changed?: { readonly from: Revision; readonly sha256: string };
}

export type WrittenOutcome = Written & { readonly kind: 'ok' | 'partial' };

type Skipped<Name extends string> = { readonly [name in Name]: 'skipped' } & {
  /** The archive has it no more; the held rows stay. */
  readonly withdrawn?: true;
  /** REST's rows are held, and the archive, which has the period, did not answer: how it failed. */
  readonly archiveFailed?: ErrorCode;
};

/** What happened to one task. */
export type Outcome =
  | WrittenOutcome
  | Skipped<'kind'>
  | { readonly kind: 'absent'; readonly reason: AbsenceReason }
  | { readonly kind: 'failed'; readonly error: CryptodlError };

export type OutcomeKind = Outcome['kind'];

export const OUTCOME_KINDS: readonly OutcomeKind[] = ['ok', 'partial', 'skipped', 'absent', 'failed'];

interface Failure {
  readonly code: ErrorCode;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  readonly attempts: number;
  readonly message: string;
}

interface TaskIdentity {
  readonly market: Market;
  readonly dataset: string;
  readonly interval?: string;
  readonly symbol: string;
  readonly cadence: Cadence;
  /** `2024-01-15` or `2024-01`, UTC. */
  readonly period: string;
  /** Name of the archive's object. */
  readonly key: string;
}

/** One archive object that was wanted, and its one end. Plain data: it survives JSON. */
export type TaskOutcome = TaskIdentity &
  (
    | ({ readonly outcome: 'ok' | 'partial' } & Written)
    | Skipped<'outcome'>
    | { readonly outcome: 'absent'; readonly reason: AbsenceReason }
    | ({ readonly outcome: 'failed' } & Failure)
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

/** Name by name: spreads into one another were a tenth of what a task costs without its bytes (bench/NOTES.md). */
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
