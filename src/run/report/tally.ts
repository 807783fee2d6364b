/** The counts of a run, for closing block, JSON summary and exit code, and the next command after failures. */
import { UTC, DAY_MS, periodAt, periodText, startOfDay } from '../../model/calendar.js';
import type { DayStart } from '../../model/calendar.js';
import { Counters } from '../../model/counters.js';
import type { Counts } from '../../model/counters.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Outcome, OutcomeKind, WrittenOutcome } from '../../model/outcome.js';
import type { AbsenceReason } from '../../model/absence-reasons.js';
import type { RunStatus } from '../../model/exit-code.js';
import type { ArchiveObject, Format, Series, Period } from '../../model/task.js';
import { shellWord } from '../../text/printable.js';
import { OUTCOME_KINDS } from '../../model/outcome.js';
import { countText, listText } from '../../model/units.js';
import { parseDurationMs } from '../../model/parse-units.js';
import { LATE_MS } from '../../model/absence-reasons.js';

export type DatasetFigures = Readonly<DatasetTally['figures']>;

class DatasetTally extends Counters<CountName> {
  #newest: Period | undefined;
  /** The newest held period of series that have each period. */
  #newestOfAll: Period | undefined;
  /** The end of the newest period after the end of a series or of the dataset. */
  #endedTo = 0;
  #published: { readonly to: number; readonly atMs: number } | undefined;
  /** By their last day. */
  readonly #unpublished = new Map<number, Period>();

  constructor(
    private readonly name: Pick<Series, 'market' | 'dataset'>,
    private readonly dayStart: DayStart,
  ) {
    super();
  }

  /** Notes which periods are held, published and unpublished. */
  note(
    series: Series,
    { period, lastModified }: Pick<ArchiveObject, 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
    const isOfEach = hasEachPeriod(series, period);
    if (outcome.kind === 'absent') {
      if (outcome.reason === 'not-published-yet' && isOfEach) this.#unpublished.set(period.to, period);
      if (outcome.reason === 'delisted' || outcome.reason === 'dataset-ended')
        this.#endedTo = Math.max(this.#endedTo, period.to);
    }
    if (outcome.kind === 'absent' || outcome.kind === 'failed') return;
    if (period.to > (this.#newest?.to ?? 0)) this.#newest = period;
    if (isOfEach && period.to > (this.#newestOfAll?.to ?? 0)) this.#newestOfAll = period;
    const atMs = lastModified === undefined ? Number.NaN : Date.parse(lastModified);
    if (!Number.isNaN(atMs) && period.to > (this.#published?.to ?? 0))
      this.#published = { to: period.to, atMs };
  }

  get figures() {
    const [newest, held, published] = [this.#newest, this.#newestOfAll, this.#published];
    const [next] = [...this.#unpublished.values()]
      .filter(({ to }) => to > (newest?.to ?? 0))
      .toSorted((one, other) => one.to - other.to);
    // None is due after the newest held period if the series have ended.
    const hasDue = held !== undefined && this.#endedTo <= held.to;
    const due = next ?? (hasDue ? periodAt(held.cadence, held.to) : undefined);
    const endMs = ({ to }: Pick<Period, 'to'>): number => startOfDay(to, this.dayStart);
    const { market, dataset } = this.name;
    return {
      market,
      dataset,
      outcomes: outcomesOf(this),
      /** Holes, which are also counted as absent. */
      holes: this.of('absentBy.hole'),
      /** The days of the objects that the lake holds, and of holes and failures. */
      days: { held: this.of('days.held'), missing: this.of('days.missing') },
      rows: this.of('rows'),
      bytes: this.of('bytes'),
      /** The newest period of the run that the lake holds, `2024-01-15` or `2024-01`, and its end in epoch milliseconds; null if it holds none. */
      newest: newest === undefined ? null : periodText(newest),
      newestEndMs: newest === undefined ? null : endMs(newest),
      /** The oldest period after `newest` that the archive had not published, and its end in epoch milliseconds. */
      unpublished: next === undefined ? null : periodText(next),
      unpublishedEndMs: next === undefined ? null : endMs(next),
      /** The time from which the publication of the period after `newest` is late; null if no further one is due. */
      freshUntilMs: due === undefined ? null : endMs(due) + LATE_MS[due.cadence],
      /** From the end of the newest period that the archive had published to its publication, in milliseconds. */
      publicationDelayMs: published === undefined ? null : Math.max(0, published.atMs - endMs(published)),
    };
  }
}

/** Bars that are longer than a day have no object on most days. */
function hasEachPeriod({ interval }: Series, { cadence }: Period): boolean {
  return (
    interval === undefined ||
    cadence === 'monthly' ||
    (parseDurationMs(interval) ?? Number.POSITIVE_INFINITY) <= DAY_MS
  );
}

/** The counts that a summary shows under their own names. */
export const SUMMED = [
  'bytes',
  'rows',
  'files',
  'unverified',
  'staleSidecars',
  'noSidecars',
  'changed',
  'withdrawn',
  'shorter',
  'duplicatesDropped',
  'duplicatesKept',
  'idConflicts',
  'suspiciousObjects',
] as const;

/**
 * `fileBytes`: bytes of the written files · `conflictingObjects`: objects with `idConflicts` · `skippedPaths`: files and links of the lake
 * that `repair` could not read or follow · `overlap`: comparisons of held rows from REST with rows of the archive · `days`: of a dataset.
 */
export type CountName =
  | (typeof SUMMED)[number]
  | 'fileBytes'
  | 'quarantined'
  | 'conflictingObjects'
  | 'skippedPaths'
  | 'waitedTooLong'
  | 'failedRetryable'
  | 'failedPermanent'
  | `outcome.${OutcomeKind}`
  | `absentBy.${AbsenceReason}`
  | `failedBy.${ErrorCode}`
  | `archiveFailed.${'fromRest' | 'held'}`
  | `days.${'held' | 'missing'}`
  | `overlap.${'compared' | 'differing' | 'onlyRest' | 'onlyArchive' | 'shifted'}`;

/** The counts of objects that the closing block shows with examples. */
export const NOTES = {
  changed: 'changed upstream, fetched again',
  withdrawn: 'withdrawn upstream; the held rows stay',
  'archiveFailed.fromRest':
    'from REST: the archive did not answer; the next run tries it again, and its rows replace these',
  'archiveFailed.held': 'held from REST stay: the archive did not answer; the next run tries it again',
  shorter:
    'revised upstream without some of the held rows; the held rows stay (--revisions take accepts the revision)',
  conflictingObjects: 'with rows of the same id or bar and different values',
  suspiciousObjects: 'with values that cannot be right; the rows are kept',
  unverified: 'no checksum published, checked only by the CRC-32 of the zip',
  noSidecars: 'no checksum published, checked by ETag',
  staleSidecars: 'stale checksum, accepted by size and ETag',
} as const satisfies Partial<Record<CountName, string>>;

export type Note = keyof typeof NOTES;

/** All kinds, also those without an object. */
export function outcomesOf(counts: Pick<Counters<CountName>, 'of'>): Record<OutcomeKind, number> {
  const counted = OUTCOME_KINDS.map((kind) => [kind, counts.of(`outcome.${kind}`)]);
  return Object.fromEntries(counted) as Record<OutcomeKind, number>;
}

/** Takes a count of an outcome, with an example for the closing block. */
type Add = (name: CountName, count?: number, example?: string) => void;

function countOutcome(
  outcome: Outcome,
  { key, period: { from, to } }: Pick<ArchiveObject, 'key' | 'period'>,
  add: Add,
): void {
  if (outcome.kind === 'failed') {
    const { code, retryable, message } = outcome.error;
    add('outcome.failed');
    add(`failedBy.${code}`, 1, `${key}: ${message}`);
    if (code === 'wait-too-long') add('waitedTooLong');
    else add(retryable ? 'failedRetryable' : 'failedPermanent');
    add('days.missing', to - from);
  } else if (outcome.kind === 'absent') {
    add('outcome.absent');
    add(`absentBy.${outcome.reason}`, 1, key);
    if (outcome.reason === 'hole') add('days.missing', to - from);
  } else {
    add('days.held', to - from);
    if (outcome.kind !== 'skipped') countWritten(outcome, key, add);
    else {
      add('outcome.skipped');
      if (outcome.archiveFailed !== undefined) add('archiveFailed.held');
      if (outcome.withdrawn === true) add('withdrawn', 1, key);
    }
  }
}

function countWritten(outcome: WrittenOutcome, key: string, add: Add): void {
  const { kind, rows = 0, keptRows, lackedRows, idConflicts, suspicious, changed } = outcome;
  if (keptRows !== undefined) {
    const lacked = lackedRows === undefined ? '' : `; it lacks ${lackedRows} held rows`;
    add(`outcome.${kind}`);
    add('shorter', 1, `${key}: ${rows} rows, the lake holds ${keptRows}${lacked}`);
    return;
  }
  add(`outcome.${kind}`, 1, kind === 'partial' ? partialText(key, outcome) : undefined);
  add('rows', rows);
  add('bytes', outcome.bytes);
  add('duplicatesDropped', outcome.duplicates ?? 0);
  add('idConflicts', idConflicts ?? 0);
  if (outcome.archiveFailed !== undefined) add('archiveFailed.fromRest');
  if (idConflicts !== undefined) add('conflictingObjects', 1, `${key}: ${idConflicts} rows`);
  const texts = suspicious?.map((one) => `${countText(one.rows, 'row')} ${one.kind}, first ${one.first}`);
  if (texts !== undefined) add('suspiciousObjects', 1, `${key}: ${texts.join('; ')}`);
  if (outcome.unverified) add('unverified', 1, key);
  if (outcome.noSidecar === true) add('noSidecars', 1, key);
  if (outcome.staleSidecar === true) add('staleSidecars', 1, key);
  if (changed !== undefined)
    add('changed', 1, `${key}: SHA-256 ${changed.from.sha256} is now ${changed.sha256}`);
}

function partialText(
  key: string,
  { rows = 0, expectedRows, gaps = [], idConflicts = 0, ids }: WrittenOutcome,
): string {
  const times = gaps.map((gap) => {
    const [from, to] = gap.map((instant) => instant.slice(0, 'YYYY-MM-DDTHH:MM'.length).replace('T', ' '));
    return `from ${from} to ${to}`;
  });
  const places = listText(times, 3);
  const lacking = ids?.missing === undefined ? '' : `; ${countText(ids.missing, 'id')} missing`;
  if (expectedRows === undefined) return `${key}: no rows ${places}${lacking}`;
  const hint = key.includes('/monthly/') ? '; cryptodl audit compares it with its days' : '';
  const others = rows < expectedRows || gaps.length === 0 ? '' : `, none ${places}`;
  if (idConflicts === 0) return `${key}: ${rows} of ${expectedRows} rows${others}${hint}`;
  return `${key}: ${rows - idConflicts} of ${expectedRows} bars, ${countText(idConflicts, 'row')} more${hint}`;
}

/** Examples of each kind in the closing block, at most. The failure report has all failures. */
const EXAMPLES = 3;

export class Tally extends Counters<CountName> {
  readonly #datasets = new Map<string, DatasetTally>();
  /** Texts about the first objects that a count has. */
  readonly examples = new Map<CountName, string[]>();
  /** New columns of the archive that were told, with their dataset. */
  readonly newColumns = new Set<string>();
  /** The series and format of the first object with rows in the lake. */
  written: { readonly series: Series; readonly format: Format } | undefined;

  constructor(
    private readonly dayStart: DayStart = UTC,
    counts: Counts<CountName> = {},
  ) {
    super(counts);
  }

  count(
    series: Series,
    object: Pick<ArchiveObject, 'key' | 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
    const name = `${series.market} ${series.dataset}`;
    const dataset = this.#datasets.get(name) ?? new DatasetTally(series, this.dayStart);
    this.#datasets.set(name, dataset);
    dataset.note(series, object, outcome);
    countOutcome(outcome, object, (counted, count, example) => {
      this.add(counted, count);
      dataset.add(counted, count);
      if (example === undefined) return;
      const texts = this.examples.get(counted) ?? [];
      if (texts.length < EXAMPLES) this.examples.set(counted, [...texts, example]);
    });
  }

  get outcomes(): Readonly<Record<OutcomeKind, number>> {
    return outcomesOf(this);
  }

  get absentBy(): Readonly<Partial<Record<AbsenceReason, number>>> {
    return this.by('absentBy');
  }

  get failedBy(): Readonly<Partial<Record<ErrorCode, number>>> {
    return this.by('failedBy');
  }

  get datasets(): DatasetFigures[] {
    return [...this.#datasets.values()].map(({ figures }) => figures);
  }

  get status() {
    return {
      waitedTooLong: this.of('waitedTooLong'),
      failedRetryable: this.of('failedRetryable'),
      failedPermanent: this.of('failedPermanent') + this.of('skippedPaths'),
      holes: this.of('absentBy.hole'),
      partial: this.of('outcome.partial'),
    } satisfies Partial<RunStatus>;
  }
}

/** The next command after a run with failures. `reportPath`: the path as it is shown to the user. */
export function nextStep(failed: Pick<Counters<CountName>, 'of'>, reportPath: string): string {
  const retry = `cryptodl retry ${shellWord(reportPath)}`;
  const stale = failed.of('failedBy.sidecar-stale');
  const mayCome = failed.of('failedRetryable') + failed.of('waitedTooLong');
  if (mayCome === 0 && failed.of('failedPermanent') > 0)
    return `run the same command again later: a retry now fails the same way; ${shellWord(reportPath)} names the objects`;
  return stale > 0 && stale === mayCome ? `${retry} --stale-checksum warn` : retry;
}
