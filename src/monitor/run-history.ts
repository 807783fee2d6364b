/** The results of the earlier runs of a lake, so that the figures of a run go on where those of the last run ended. */
import type { LakePaths } from '../lake/layout.js';
import type { DatasetFigures } from '../report/dataset-tally.js';
import { readRuns } from './run-record.js';
import type { RunRecord } from './run-record.js';

/** The parts of a run that tell which selection it has. */
export type SelectedRun = Pick<RunRecord, 'verb' | 'job' | 'options'>;

export interface RunHistory {
  /** End of the last run of the selection with exit code 0, in epoch milliseconds. */
  readonly lastSuccessMs: number | undefined;
  /** The number of latest runs of the selection that had failed objects. */
  readonly failedInARow: number;
  /** The figures of the newest record for each market and dataset of the job, else verb. `newestEndMs` and `freshUntilMs` are the latest of all records. */
  readonly datasets: readonly DatasetFigures[];
}

export const NO_HISTORY: RunHistory = { lastSuccessMs: undefined, failedInARow: 0, datasets: [] };

/** The run that a reader looks for is usually among the first so many. A lake with many jobs may need all records. */
const STEPS = [50, 1000];

/** The newest records, oldest first: enough to have one that `isFound` accepts, if there is one. Rejects with errors of the system. */
export async function readRunsUntil(
  paths: LakePaths,
  isFound: (run: RunRecord) => boolean,
): Promise<readonly RunRecord[]> {
  let found: readonly RunRecord[] = [];
  for (const most of STEPS) {
    ({ runs: found } = await readRuns(paths, most));
    if (found.length < most || found.some(isFound)) break;
  }
  return found;
}

/** Tells the datasets that the exchange has. */
type IsKnown = (market: string, dataset: string) => boolean;

/** Rejects with errors of the system. A record may name other datasets, which are left out. */
export async function readHistory(paths: LakePaths, run: SelectedRun, isKnown: IsKnown): Promise<RunHistory> {
  const runs = await readRunsUntil(paths, (each) => isSuccess(each) && isSame(each, run));
  return historyOf(runs.toReversed(), run, isKnown);
}

/** `runs`: newest first. */
function historyOf(runs: readonly RunRecord[], run: SelectedRun, isKnown: IsKnown): RunHistory {
  const own = runs.filter((each) => each.verb === run.verb && each.job === run.job);
  const same = own.filter((each) => isSame(each, run));
  const success = same.find(isSuccess);
  const well = same.findIndex(({ summary }) => summary.outcomes.failed === 0);
  const datasets = new Map<string, DatasetFigures>();
  for (const { summary } of own) {
    for (const figures of summary.datasets.filter((each) => isKnown(each.market, each.dataset))) {
      const name = `${figures.market} ${figures.dataset}`;
      const newer = datasets.get(name);
      datasets.set(name, {
        ...(newer ?? figures),
        newestEndMs: latest([newer?.newestEndMs, figures.newestEndMs]),
        freshUntilMs: latest([newer?.freshUntilMs, figures.freshUntilMs]),
      });
    }
  }
  return {
    lastSuccessMs: success === undefined ? undefined : Date.parse(success.endedAt),
    failedInARow: well < 0 ? same.length : well,
    datasets: [...datasets.values()],
  };
}

/** The options that tell commands apart; a command of another day has other dates. */
const SELECTING = ['market', 'dataset', 'symbols', 'interval'] as const;

/** Whether both are runs of one crontab line or job. */
export function isSame(one: SelectedRun, other: SelectedRun): boolean {
  return selectionOf(one) === selectionOf(other);
}

/** A name of the command or job of a run. */
export function selectionOf({ verb, job, options }: SelectedRun): string {
  return JSON.stringify([verb, job, ...SELECTING.map((name) => options[name])]);
}

function isSuccess({ summary }: RunRecord): boolean {
  return summary.exitCode === 0;
}

/** The latest time; null if there is none. */
export function latest(times: readonly (number | null | undefined)[]): number | null {
  const known = times.filter((time) => typeof time === 'number');
  return known.length === 0 ? null : Math.max(...known);
}
