/** The earlier runs of a lake: the figures that a new run continues, and what became of the last run. */
import type { Exchange } from '../../exchange/exchange.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import type { LakePaths } from '../../lake/layout.js';
import type { DatasetFigures } from '../report/dataset-tally.js';
import { readRuns, readStarts } from './run-files.js';
import type { RunRecord, RunStart } from './run-record.js';

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

function isSame(one: RunIdentity, other: RunIdentity): boolean {
  return selectionOf(one) === selectionOf(other);
}

/** A text that is the same for all runs of one selection. */
export function selectionOf({ verb, job, options }: RunIdentity): string {
  return JSON.stringify([verb, job, ...SELECTING.map((name) => options[name])]);
}

/** A text that is the same for all runs that ask for the same. */
function askedOf(run: RunIdentity): string {
  return selectionOf(run) + JSON.stringify(ORDERING.map((name) => run.options[name]));
}

function layerOf({ verb, job, options }: RunIdentity): string {
  return JSON.stringify([verb, job, options['market'], options['dataset'], options['interval']]);
}

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
