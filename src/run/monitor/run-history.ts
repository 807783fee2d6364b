/** The earlier runs of a lake: the figures that a new run continues, and what became of the last run. */
import type { Exchange } from '../../exchange/exchange.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import type { LakePaths } from '../../lake/layout.js';
import type { DatasetFigures } from '../report/tally.js';
import { readRuns, readStarts } from './run-files.js';
import type { RunRecord, RunStart } from './run-record.js';
import { toCryptodlError } from '../../model/errors.js';
import { refuseIfLocked } from '../../lake/lock.js';
import { agoText } from '../../model/units.js';
import { printable } from '../../text/printable.js';

/** The parts of a run that tell which selection it has. The options are the given ones, without private addresses. */
export type RunIdentity = Pick<RunRecord, 'verb' | 'job' | 'options'>;

export interface RunHistory {
  /** End of the last run of the selection with exit code 0, in epoch milliseconds. */
  readonly lastSuccessMs: number | undefined;
  /** The number of latest runs of the selection that had failed objects. */
  readonly failedInARow: number;
  /** The figures in the records that were read of this verb and job, oldest first. */
  readonly datasets: readonly DatasetFigures[];
}

export const NO_HISTORY: RunHistory = { lastSuccessMs: undefined, failedInARow: 0, datasets: [] };

/** The run that a reader looks for is usually among so many newest records. A lake with many jobs may need all. */
const USUALLY_ENOUGH = 50;

/** Leaves out datasets that the exchange does not have. Rejects with errors of the system. */
export async function readHistory(
  paths: LakePaths,
  run: RunIdentity,
  exchange: Exchange,
): Promise<RunHistory> {
  const isSuccess = (each: RunRecord): boolean => each.summary.exitCode === 0 && isSame(each, run);
  const { runs: newest } = await readRuns(paths, USUALLY_ENOUGH);
  const runs = newest.some(isSuccess) ? newest : (await readRuns(paths)).runs;
  const own = runs.filter((each) => each.verb === run.verb && each.job === run.job);
  const same = own.filter((each) => isSame(each, run));
  const success = same.findLast(isSuccess);
  const runsSinceWell = same.toReversed().findIndex(({ summary }) => summary.outcomes.failed === 0);
  return {
    lastSuccessMs: success === undefined ? undefined : Date.parse(success.endedAt),
    failedInARow: runsSinceWell < 0 ? same.length : runsSinceWell,
    datasets: own.flatMap(({ summary }) =>
      summary.datasets.filter(({ market, dataset }) => findDataset(exchange, market, dataset) !== undefined),
    ),
  };
}

/** The options that tell selections apart. Dates are not among them: a daily command has other dates each day. */
const SELECTING = ['market', 'dataset', 'symbols', 'interval'] as const;

/** The other options that tell orders apart, by their texts: those of a daily command stay the same. */
const ORDERING = ['from', 'to', 'days', 'months', 'format', 'quote', 'shard', 'join'] as const;

const isSame = (one: RunIdentity, other: RunIdentity): boolean => selectionOf(one) === selectionOf(other);

/** A text that is the same for all runs of one selection. */
export const selectionOf = ({ verb, job, options }: RunIdentity): string =>
  JSON.stringify([verb, job, ...SELECTING.map((name) => options[name])]);

/** A text that is the same for all runs that ask for the same. */
const askedOf = (run: RunIdentity): string =>
  selectionOf(run) + JSON.stringify(ORDERING.map((name) => run.options[name]));

const layerOf = ({ verb, job, options }: RunIdentity): string =>
  JSON.stringify([verb, job, options['market'], options['dataset'], options['interval']]);

/**
 * Whether a run ended before its order was written, and no run has written one since. The next run with symbols of the same market, dataset and interval decides what is
 * wanted of them. Of a start that cannot be read, nothing is known until the next run. Rejects with errors of the system.
 */
export async function lacksOrder(paths: LakePaths): Promise<boolean> {
  const { starts, torn } = await readStarts(paths);
  const unordered = starts.filter((start) => !isOrdered(start));
  if (unordered.length + torn.length === 0) return false;
  const { runs } = await readRuns(paths);
  const ordered: readonly (RunIdentity & { readonly id: string })[] = [...runs, ...starts.filter(isOrdered)];
  const isDecided = (start: RunStart): boolean =>
    ordered.some(
      (run) =>
        askedOf(run) === askedOf(start) ||
        (run.id > start.id && run.options['symbols'] !== undefined && layerOf(run) === layerOf(start)),
    );
  const last = ordered.reduce((id, run) => (run.id > id ? run.id : id), '');
  return torn.some((id) => id > last) || !unordered.every(isDecided);
}

/** Whether an order has what the run asked for: its own, or one that it continued. */
function isOrdered({ verb, options, isOrdered: hasWritten }: RunStart): boolean {
  // Runs without symbols of their own continue the orders of the lake.
  const hasOwn = (verb === 'vision' || verb === 'metrics') && options['symbols'] !== undefined;
  return hasWritten === true || !hasOwn;
}

export interface LastRun extends Pick<RunStart, 'verb' | 'job' | 'startedAt'> {
  /** `killed`, `running`: only the start is there. `failed`: the run could not begin. */
  readonly fate: 'ended' | 'failed' | 'killed' | 'running';
  readonly exitCode: number | undefined;
  readonly error: string | undefined;
}

/** Whether a run writes to the lake now. Rejects with errors of the system. */
export async function isRunning({ internal }: LakePaths): Promise<boolean> {
  try {
    await refuseIfLocked(internal);
    return false;
  } catch (error) {
    if (toCryptodlError(error).code === 'locked') return true;
    throw error;
  }
}

/** Undefined if no run has left a record or a start. Rejects with errors of the system. */
export async function lastRun(paths: LakePaths, running: boolean): Promise<LastRun | undefined> {
  const start = (await readStarts(paths)).starts.at(-1);
  const run = (await readRuns(paths, 1)).runs.at(-1);
  if (start !== undefined && (run === undefined || start.id > run.id)) return ofStart(start, running);
  if (run === undefined) return undefined;
  const { verb, job, startedAt, summary } = run;
  const { exitCode } = summary;
  return { verb, job, startedAt, fate: 'ended', exitCode, error: undefined };
}

/** A start without an end is that of a run that was killed, unless a run holds the lock. */
export function ofStart(start: RunStart, running: boolean): LastRun {
  const { verb, job, startedAt, ended } = start;
  const fate = ended !== undefined ? 'failed' : running ? 'running' : 'killed';
  return { verb, job, startedAt, fate, exitCode: undefined, error: ended?.message };
}

/** `vision, 3h 0m ago (2026-11-21 05:00 UTC): exit code 0`. The time is the start of the run. */
export function fateText({ fate, exitCode, error, ...run }: LastRun, nowMs: number): string {
  const when = agoText(Date.parse(run.startedAt), nowMs);
  const texts = {
    ended: `exit code ${exitCode ?? 0}`,
    failed: `could not begin: ${printable(error ?? '')}`,
    killed: 'was killed before its end',
    running: 'is running',
  };
  return `${printable(runName(run))}, ${when}: ${texts[fate]}`;
}

/** The runs of one crontab line or job: `vision`, or `vision bars` for a job. */
export function runName({ verb, job }: Pick<RunStart, 'verb' | 'job'>): string {
  return job === undefined ? verb : `${verb} ${job}`;
}
