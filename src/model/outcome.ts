/** The outcome of a task, inside the program and as plain data for reports and the library. */
import type { CryptodlError, ErrorCode } from './errors.js';
import type { AbsenceReason } from './absence-reasons.js';
import type { Revision, SourceObject, Cadence, Market, Series } from './task.js';
import { periodText } from './calendar.js';

export interface RowFacts {
  /** Rows of the object in the file; absent for zip. */
  readonly rows?: number;
  /** ISO instants of the first and last row, by time. Manifest lines and events have these names. */
  readonly first?: string;
  readonly last?: string;
  /** Times of missing rows, if they are known: ISO instants `[from, to)`, ascending, at most `MAX_GAPS`. */
  readonly gaps?: readonly (readonly [string, string])[];
  /** Exact duplicates within the object that were dropped; 0 with `asPublished`. */
  readonly duplicates?: number;
  /**
   * Rows that share the key or the bar of another row of the object but differ in values, and rows of bars outside the period. The file has all of
   * them; of the rows of one key, the first published one comes first.
   */
  readonly idConflicts?: number;
  /** Columns of the object that this version does not know. The file lacks them. */
  readonly newColumns?: readonly string[];
  /** Rows with values that cannot be right, by kind. The file has them. */
  readonly suspicious?: readonly Suspicious[];
  /** The ids of the rows, in datasets whose ids leave out none. Absent if the ids are not known. */
  readonly ids?: IdFacts;
}

/** Maximum number of gaps recorded for one object. */
export const MAX_GAPS = 100;

export interface IdRange {
  readonly first: number;
  readonly last: number;
}

/**
 * The ids of an object, which go on in the next one. Scheduled rows have minutes since 1970 in their place: `first` is the minute after that of
 * the row that must come before the first one, and `last` that of the last row.
 */
export interface IdFacts extends IdRange {
  /** The trade ids of aggregates, which have ranges of them. */
  readonly range?: IdRange;
  /** Ids between the first and the last that no row has. */
  readonly missing?: number;
  /** Rows whose range of trade ids overlaps that of another row before it: the same trades under new ids. */
  readonly overlapping?: number;
  /** Where the object has no row for a time that is long for its own rows. The ids of the object next to it may prove that none is missing. */
  readonly silent?: readonly ('begin' | 'end')[];
}

/**
 * Rows of an object with values that cannot be right. `order`: high or low against open or close. `zero`: a price of 0 or below. `negative`: a
 * volume. `constant`: one value for a whole day.
 */
export interface Suspicious {
  readonly kind: (typeof SUSPICIOUS_KINDS)[number];
  readonly rows: number;
  /** Time and values of the first row. */
  readonly first: string;
}

export const SUSPICIOUS_KINDS = ['order', 'zero', 'negative', 'constant'] as const;

interface Written extends RowFacts {
  /** Rows that the period must have, if that is known. */
  readonly expectedRows?: number;
  /** Rows of the held revision. They stay, because the new revision lacks some of them and was rejected. */
  readonly keptRows?: number;
  /** Held rows that the new revision lacks, by id or time, if they were counted. */
  readonly lackedRows?: number;
  /** Size of the zip; for rows from REST, of their text as CSV. */
  readonly bytes: number;
  /** No digest is published: only the CRC-32 in the zip verifies the content. */
  readonly unverified: boolean;
  /** No digest is published: the ETag of the listing verifies the content. */
  readonly noSidecar?: true;
  /** Size and ETag match, the digest in the sidecar does not. */
  readonly staleSidecar?: true;
  /** Rows come from REST because requests to the archive failed with this code. The next run requests the archive again. */
  readonly archiveFailed?: ErrorCode;
  /** The object has changed upstream: the previous revision, and the new digest. Events have these names. */
  readonly changed?: { readonly from: Revision; readonly sha256: string };
}

export type WrittenOutcome = Written & { readonly kind: 'ok' | 'partial' };

type Skipped<Name extends string> = { readonly [name in Name]: 'skipped' } & {
  /** The archive no longer has the object; the held rows stay. */
  readonly withdrawn?: true;
  /** Rows from REST are held, and requests to the archive, which has or may have the period, failed with this code. */
  readonly archiveFailed?: ErrorCode;
};

export type Outcome =
  | WrittenOutcome
  | Skipped<'kind'>
  | { readonly kind: 'absent'; readonly reason: AbsenceReason }
  | { readonly kind: 'failed'; readonly error: CryptodlError };

export type OutcomeKind = Outcome['kind'];

export const OUTCOME_KINDS: readonly OutcomeKind[] = ['ok', 'partial', 'skipped', 'absent', 'failed'];

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

export function taskOutcome(series: Series, object: SourceObject, outcome: Outcome): TaskOutcome {
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
  { period, key }: SourceObject,
): { outcome: O } & TaskIdentity {
  const { cadence } = period;
  return interval === undefined
    ? { outcome, market, dataset, symbol, cadence, period: periodText(period), key }
    : { outcome, market, dataset, interval, symbol, cadence, period: periodText(period), key };
}
