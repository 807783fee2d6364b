/** The last lines of a run: counts, paths of the data, and the next command. */
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import type { Counts } from '../../model/counters.js';
import { OUTCOME_KINDS } from '../../model/outcome.js';
import type { AbsenceReason } from '../../model/absence-reasons.js';
import { bytesText, countText, durationText, numberText } from '../../model/units.js';
import type { NetworkTotals } from './network-figures.js';
import type { RunEnd } from './run-summary.js';
import { NOTES, type CountName, type NoteName } from './count-outcome.js';
import type { Tally } from './tally.js';

type OfEnd = 'tally' | 'times' | 'shard' | 'dataPath' | 'reportPath' | 'quarantinePath' | 'undone' | 'alerts';

export interface Closing extends Pick<RunEnd, OfEnd> {
  readonly network: NetworkTotals;
  readonly diagnosis: readonly string[];
  /** Jobs of a queue that have not ended. */
  readonly openJobs?: number;
  readonly next: string | undefined;
  readonly trouble: {
    /** With `--strict`, holes and partial objects are trouble. */
    readonly strict: boolean;
    /** With `--error-on-nothing`, a run that wrote nothing new is trouble. */
    readonly nothingNew: boolean;
  };
}

/** `isQuiet`: only the counts, the reasons for trouble, the alerts, the paths of failures and quarantine, and the next command. */
export function closingBlock(closing: Closing, isQuiet = false): string[] {
  const { tally, trouble, alerts, undone, openJobs, times } = closing;
  const partial = tally.of('outcome.partial') - tally.of('shorter');
  const unlessQuiet = (lines: readonly string[]): readonly string[] => (isQuiet ? [] : lines);
  return [
    `${countsText(tally, undone, openJobs)} in ${durationText(times.elapsedMs)}`,
    ...unlessQuiet([
      ...work(closing),
      ...row('time', timeText(times)),
      ...closing.diagnosis,
      ...overlapLines(tally),
    ]),
    ...(trouble.nothingNew ? [NOTHING_NEW] : []),
    ...unlessQuiet(
      noteLines(tally, ['archiveFailed.fromRest', 'archiveFailed.held', 'changed', 'withdrawn']),
    ),
    ...noteLines(tally, ['shorter']),
    ...(isQuiet && !trouble.strict ? [] : named(tally, PARTIAL, 'outcome.partial', partial)),
    ...(Object.keys(tally.absentBy) as AbsenceReason[])
      .filter((reason) => !isQuiet || trouble.nothingNew || (trouble.strict && reason === 'hole'))
      .flatMap((reason) => named(tally, `absent, ${reason}`, `absentBy.${reason}`)),
    ...unlessQuiet(
      noteLines(tally, [
        'conflictingObjects',
        'suspiciousObjects',
        'unverified',
        'noSidecars',
        'staleSidecars',
      ]),
    ),
    ...failedLines(tally),
    ...alerts.flatMap(({ text, advice }) => row('alert', `${text}: ${advice}`)),
    ...unlessQuiet([...row('shard', closing.shard), ...row('data', closing.dataPath)]),
    ...row('failures', closing.reportPath),
    ...row('quarantine', closing.quarantinePath),
    ...row('next', closing.next),
  ];
}

/** Shorter runs get no line with their times. */
const TIMES_AFTER_MS = 10_000;

/** For example `plan 18s, work 38.5s; of the objects' time 5 % wait, 95 % transfer`; undefined for a short run. */
export function timeText(times: RunEnd['times']): string | undefined {
  const { elapsedMs, planMs, pausedMs, workMs, stagesMs } = times;
  if (elapsedMs <= TIMES_AFTER_MS) return undefined;
  const pauses = pausedMs < 1000 ? '' : `pauses ${durationText(pausedMs)}, `;
  const phases = `plan ${durationText(planMs)}, ${pauses}work ${durationText(workMs)}`;
  const stages = Object.entries(stagesMs).filter(([, ms]) => ms > 0);
  const sum = stages.reduce((total, [, ms]) => total + ms, 0);
  const shares = stages.map(([stage, ms]) => `${Math.round((ms / sum) * 100)} % ${stage}`);
  return shares.length === 0 ? phases : `${phases}; of the objects' time ${shares.join(', ')}`;
}

/** Counts of objects by outcome, of objects that were not begun, and of jobs that have not ended. */
function countsText(tally: Tally, undone: number, openJobs = 0): string {
  const counts = [
    ...OUTCOME_KINDS.flatMap((kind) => some(tally.outcomes[kind], kind)),
    ...some(undone, 'not done'),
    ...(openJobs > 0 ? [`${countText(openJobs, 'job')} not done`] : []),
  ];
  return counts.length === 0 ? 'nothing to do' : counts.join(', ');
}

function overlapLines(tally: Tally): string[] {
  const overlap: Counts = tally.by('overlap');
  const { compared = 0, differing = 0, onlyRest = 0, onlyArchive = 0, shifted = 0 } = overlap;
  if (compared + onlyRest + onlyArchive === 0) return [];
  const parts = [
    `${numberText(compared)} rows of REST with those of the archive: ${numberText(differing)} differ`,
    ...some(onlyRest, 'only REST had'),
    ...some(onlyArchive, 'only the archive has'),
    ...some(shifted, 'files the labels of the archive are off by one interval').map((text) => `in ${text}`),
  ];
  return row('compared', parts.join(', '));
}

/** `1,200 requests`; nothing for 0. */
export function some(count: number, what: string): string[] {
  return count > 0 ? [`${numberText(count)} ${what}`] : [];
}

/** A line with a name in front; none without a text. */
export function row(name: string, text: string | undefined, width = 10): string[] {
  return text === undefined ? [] : [`  ${name.padEnd(width)} ${text}`];
}

function work({ tally, network, times: { workMs } }: Closing): string[] {
  const [files, bytes, rows] = [tally.of('files'), tally.of('bytes'), tally.of('rows')];
  if (files === 0) return [];
  const speed = workMs > 0 ? ` at ${bytesText(Math.round((bytes / workMs) * 1000))}/s` : '';
  const written = [...some(rows, 'rows'), countText(files, 'file')].join(' in ');
  const dropped = some(tally.of('duplicatesDropped'), 'exact duplicate rows within one object');
  const kept = some(tally.of('duplicatesKept'), 'exact duplicate rows across objects');
  const requests = `${numberText(network.requests)} requests, ${numberText(network.retries.total)} retried`;
  return [
    ...row('fetched', `${bytesText(bytes)}${speed}, ${requests}`),
    ...row('written', `${written}, ${bytesText(tally.of('fileBytes'))}`),
    ...dropped.flatMap((text) => row('dropped', text)),
    ...kept.flatMap((text) => row('kept', text)),
  ];
}

const noteLines = (tally: Tally, notes: readonly NoteName[]): string[] =>
  notes.flatMap((note) => named(tally, NOTES[note], note));

function failedLines(tally: Tally): string[] {
  return (Object.keys(tally.failedBy) as ErrorCode[]).flatMap((code) => {
    const may = new CryptodlError(code, '').retryable ? ' (retrying may help)' : '';
    return named(tally, `failed, ${code}${may}`, `failedBy.${code}`);
  });
}

const PARTIAL = 'partial, fewer or more rows than the period must have';
const NOTHING_NEW = '  nothing new was written (--error-on-nothing)';

function named(tally: Tally, title: string, name: CountName, count = tally.of(name)): string[] {
  const examples = tally.examples.get(name) ?? [];
  const left = count - examples.length;
  const more = left > 0 && examples.length > 0 ? [`      … and ${numberText(left)} more`] : [];
  return some(count, title).flatMap((line) => [
    `  ${line}`,
    ...examples.map((text) => `      ${text}`),
    ...more,
  ]);
}

// The lines at the end of `cryptodl run`: the end of each job.

export interface JobsClosing {
  /** Without an exit code: the job was not started. Without an end: it began no object. */
  readonly jobs: readonly {
    readonly job: { readonly name: string };
    readonly exitCode?: number;
    readonly end?: Pick<RunEnd, 'tally' | 'undone'>;
  }[];
  readonly elapsedMs: number;
  readonly next: string | undefined;
}

export function jobsBlock({ jobs, elapsedMs, next }: JobsClosing): string[] {
  const succeeded = jobs.filter(({ exitCode }) => exitCode === 0).length;
  const width = Math.max(10, ...jobs.map(({ job }) => job.name.length));
  const all =
    succeeded === jobs.length ? 'all succeeded' : `${succeeded} succeeded, ${jobs.length - succeeded} failed`;
  return [
    `${countText(jobs.length, 'job')}: ${all}, in ${durationText(elapsedMs)}`,
    ...jobs.flatMap(({ job: { name }, exitCode, end }) => {
      const counted = end === undefined ? 'nothing done' : countsText(end.tally, end.undone);
      const code = exitCode === 0 ? '' : ` (exit code ${exitCode})`;
      return row(name, exitCode === undefined ? 'not started' : counted + code, width);
    }),
    ...row('next', next, width),
  ];
}
