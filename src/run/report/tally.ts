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
import { countText, listText, parseDurationMs } from '../../model/units.js';
import { LATE_MS } from '../../model/absence-reasons.js';

export type DatasetFigures = Readonly<DatasetTally['figures']>;

/** The outcomes of one dataset of a market. */
export class DatasetTally {
  readonly #counts = new Counters<CountName>();
  readonly #name: Pick<Series, 'market' | 'dataset'>;
  readonly #dayStart: DayStart;
  #newest: Period | undefined;
  /** The newest held period of series that have each period. */
  #newestOfAll: Period | undefined;
  /** The end of the newest period after the end of a series or of the dataset. */
  #endedTo = 0;
  #published: { readonly to: number; readonly atMs: number } | undefined;
  /** By their last day. */
  readonly #unpublished = new Map<number, Period>();

  constructor({ market, dataset }: Pick<Series, 'market' | 'dataset'>, dayStart: DayStart) {
    this.#name = { market, dataset };
    this.#dayStart = dayStart;
  }

  count(
    series: Series,
    { period, lastModified }: Pick<ArchiveObject, 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
    countOutcome(this.#counts, outcome, period);
    if (outcome.kind === 'absent') {
      if (outcome.reason === 'not-published-yet' && hasEachPeriod(series, period))
        this.#unpublished.set(period.to, period);
      if (outcome.reason === 'delisted' || outcome.reason === 'dataset-ended')
        this.#endedTo = Math.max(this.#endedTo, period.to);
    }
    if (outcome.kind === 'absent' || outcome.kind === 'failed') return;
    if (period.to > (this.#newest?.to ?? 0)) this.#newest = period;
    if (hasEachPeriod(series, period) && period.to > (this.#newestOfAll?.to ?? 0)) this.#newestOfAll = period;
    const atMs = lastModified === undefined ? Number.NaN : Date.parse(lastModified);
    if (!Number.isNaN(atMs) && period.to > (this.#published?.to ?? 0))
      this.#published = { to: period.to, atMs };
  }

  get figures() {
    const counts = this.#counts;
    const [newest, published] = [this.#newest, this.#published];
    const next = [...this.#unpublished.values()]
      .filter(({ to }) => to > (newest?.to ?? 0))
      .toSorted((one, other) => one.to - other.to)[0];
    return {
      ...this.#name,
      outcomes: outcomesOf(counts),
      /** Holes, which are also counted as absent. */
      holes: counts.of('absentBy.hole'),
      /** The days of the objects that the lake holds, and of holes and failures. */
      days: { held: counts.of('days.held'), missing: counts.of('days.missing') },
      rows: counts.of('rows'),
      bytes: counts.of('bytes'),
      /** The newest period of the run that the lake holds, `2024-01-15` or `2024-01`, and its end in epoch milliseconds; null if it holds none. */
      newest: newest === undefined ? null : periodText(newest),
      newestEndMs: this.#endOf(newest),
      /** The oldest period after `newest` that the archive had not published, and its end in epoch milliseconds. */
      unpublished: next === undefined ? null : periodText(next),
      unpublishedEndMs: this.#endOf(next),
      /** The time from which the publication of the period after `newest` is late; null if no further one is due. */
      freshUntilMs: this.#lateFrom(next ?? this.#dueNext()),
      /** From the end of the newest period that the archive had published to its publication, in milliseconds. */
      publicationDelayMs:
        published === undefined
          ? null
          : Math.max(0, published.atMs - startOfDay(published.to, this.#dayStart)),
    };
  }

  #endOf(period: Period | undefined): number | null {
    return period === undefined ? null : startOfDay(period.to, this.#dayStart);
  }

  #lateFrom(period: Period | undefined): number | null {
    return period === undefined ? null : startOfDay(period.to, this.#dayStart) + LATE_MS[period.cadence];
  }

  /** The period after the newest held one; undefined if the series have ended. */
  #dueNext(): Period | undefined {
    const held = this.#newestOfAll;
    if (held === undefined || this.#endedTo > held.to) return undefined;
    return periodAt(held.cadence, held.to);
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
  shorter:
    'revised upstream without some of the held rows; the held rows stay (--revisions take accepts the revision)',
  conflictingObjects: 'with rows of the same id or bar and different values',
  suspiciousObjects: 'with values that cannot be right; the rows are kept',
  unverified: 'no checksum published, checked only by the CRC-32 of the zip',
  noSidecars: 'no checksum published, checked by ETag',
  staleSidecars: 'stale checksum, accepted by size and ETag',
} as const satisfies Partial<Record<CountName, string>>;

export type Note = keyof typeof NOTES;

/** By note, error code, reason of absence, or `partial`. */
type Example = readonly [kind: Note | ErrorCode | AbsenceReason | 'partial', text: string];

/** All kinds, also those without an object. */
export function outcomesOf(counts: Pick<Counters<CountName>, 'of'>): Record<OutcomeKind, number> {
  const counted = OUTCOME_KINDS.map((kind) => [kind, counts.of(`outcome.${kind}`)]);
  return Object.fromEntries(counted) as Record<OutcomeKind, number>;
}

/** Adds the outcome of an object with this period. */
function countOutcome(counts: Counters<CountName>, outcome: Outcome, { from, to }: Period): void {
  counts.add(`outcome.${outcome.kind}`);
  switch (outcome.kind) {
    case 'failed':
      counts.add(`failedBy.${outcome.error.code}`);
      if (outcome.error.code === 'wait-too-long') counts.add('waitedTooLong');
      else counts.add(outcome.error.retryable ? 'failedRetryable' : 'failedPermanent');
      counts.add('days.missing', to - from);
      return;
    case 'absent':
      counts.add(`absentBy.${outcome.reason}`);
      if (outcome.reason === 'hole') counts.add('days.missing', to - from);
      return;
    case 'skipped':
      if (outcome.archiveFailed !== undefined) counts.add('archiveFailed.held');
      break;
    case 'ok':
    case 'partial':
      countWritten(counts, outcome);
  }
  counts.add('days.held', to - from);
}

function countWritten(counts: Counters<CountName>, outcome: WrittenOutcome): void {
  if (outcome.keptRows !== undefined) return;
  counts.add('rows', outcome.rows ?? 0);
  counts.add('bytes', outcome.bytes);
  counts.add('duplicatesDropped', outcome.duplicates ?? 0);
  counts.add('idConflicts', outcome.idConflicts ?? 0);
  if (outcome.archiveFailed !== undefined) counts.add('archiveFailed.fromRest');
}

function examplesOf(key: string, outcome: Outcome): readonly Example[] {
  switch (outcome.kind) {
    case 'failed':
      return [[outcome.error.code, `${key}: ${outcome.error.message}`]];
    case 'absent':
      return [[outcome.reason, key]];
    case 'skipped':
      return outcome.withdrawn === true ? [['withdrawn', key]] : [];
    case 'ok':
    case 'partial':
      return examplesOfWritten(key, outcome);
  }
}

function examplesOfWritten(key: string, outcome: WrittenOutcome): readonly Example[] {
  const { rows = 0, keptRows, lackedRows, idConflicts, suspicious, changed } = outcome;
  if (keptRows !== undefined) {
    const lacked = lackedRows === undefined ? '' : `; it lacks ${lackedRows} held rows`;
    return [['shorter', `${key}: ${rows} rows, the lake holds ${keptRows}${lacked}`]];
  }
  const examples: Example[] = [];
  if (idConflicts !== undefined) examples.push(['conflictingObjects', `${key}: ${idConflicts} rows`]);
  const texts = suspicious?.map(
    ({ kind, rows: wrong, first }) => `${countText(wrong, 'row')} ${kind}, first ${first}`,
  );
  if (texts !== undefined) examples.push(['suspiciousObjects', `${key}: ${texts.join('; ')}`]);
  if (outcome.unverified) examples.push(['unverified', key]);
  if (outcome.noSidecar === true) examples.push(['noSidecars', key]);
  if (outcome.staleSidecar === true) examples.push(['staleSidecars', key]);
  if (changed !== undefined)
    examples.push(['changed', `${key}: SHA-256 ${changed.from.sha256} is now ${changed.sha256}`]);
  if (outcome.kind === 'partial') examples.push(['partial', partialText(key, outcome)]);
  return examples;
}

function partialText(
  key: string,
  { rows = 0, expectedRows, gaps = [], idConflicts = 0, ids }: WrittenOutcome,
): string {
  const places = listText(
    gaps.map(([from, to]) => `from ${minuteText(from)} to ${minuteText(to)}`),
    3,
  );
  const lacking = ids?.missing === undefined ? '' : `; ${countText(ids.missing, 'id')} missing`;
  if (expectedRows === undefined) return `${key}: no rows ${places}${lacking}`;
  const hint = key.includes('/monthly/') ? '; cryptodl audit compares it with its days' : '';
  const others = rows < expectedRows || gaps.length === 0 ? '' : `, none ${places}`;
  if (idConflicts === 0) return `${key}: ${rows} of ${expectedRows} rows${others}${hint}`;
  return `${key}: ${rows - idConflicts} of ${expectedRows} bars, ${countText(idConflicts, 'row')} more${hint}`;
}

function minuteText(instant: string): string {
  return instant.slice(0, 'YYYY-MM-DDTHH:MM'.length).replace('T', ' ');
}

/** Examples of each kind in the closing block, at most. The failure report has all failures. */
const EXAMPLES = 5;

export class Tally extends Counters<CountName> {
  readonly #dayStart: DayStart;
  readonly #datasets = new Map<string, DatasetTally>();
  /** By error code, reason of absence, `partial`, or name of a note. */
  readonly examples = new Map<string, string[]>();
  /** New columns of the archive that were told, with their dataset. */
  readonly newColumns = new Set<string>();
  /** The series and format of the first object with rows in the lake. */
  written: { readonly series: Series; readonly format: Format } | undefined;

  constructor(dayStart: DayStart = UTC, counts: Counts<CountName> = {}) {
    super(counts);
    this.#dayStart = dayStart;
  }

  count(
    series: Series,
    object: Pick<ArchiveObject, 'key' | 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
    countOutcome(this, outcome, object.period);
    for (const [kind, text] of examplesOf(object.key, outcome)) {
      if (kind in NOTES) this.add(kind as Note);
      const texts = this.examples.get(kind);
      if (texts === undefined) this.examples.set(kind, [text]);
      else if (texts.length < EXAMPLES) texts.push(text);
    }
    const name = `${series.market} ${series.dataset}`;
    const known = this.#datasets.get(name);
    const dataset = known ?? new DatasetTally(series, this.#dayStart);
    if (known === undefined) this.#datasets.set(name, dataset);
    dataset.count(series, object, outcome);
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

  /** The counts on which the exit code depends. */
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

// The next command after a run with failures.

/** The next command. `reportPath`: the path as it is shown to the user. */
export function nextStep(failed: Pick<Counters<CountName>, 'of'>, reportPath: string): string {
  const retry = `cryptodl retry ${shellWord(reportPath)}`;
  const stale = failed.of('failedBy.sidecar-stale');
  const mayCome = failed.of('failedRetryable') + failed.of('waitedTooLong');
  if (mayCome === 0 && failed.of('failedPermanent') > 0)
    return `${AGAIN}; ${shellWord(reportPath)} names the objects`;
  return stale > 0 && stale === mayCome ? `${retry} --stale-checksum warn` : retry;
}

/** The next step after failures that `cryptodl retry` cannot change. */
const AGAIN = 'run the same command again later: a retry now fails the same way';
