/** The results of the earlier runs of a lake, so that the figures of a run go on where those of the last run ended. */
import type { LakePaths } from '../lake/layout.js';
import type { DatasetFigures } from '../report/dataset-tally.js';
import { readRuns } from './run-record.js';
import type { RunRecord } from './run-record.js';

export interface RunHistory {
  /** End of the last run of the job with exit code 0, in epoch milliseconds. */
  readonly lastSuccessMs: number | undefined;
  /** The number of latest runs of the job that had failed objects. */
  readonly failedInARow: number;
  /** The figures of the newest record for each market and dataset of the job. `newestEndMs` is the latest one of all records. */
  readonly datasets: readonly DatasetFigures[];
}

export const NO_HISTORY: RunHistory = { lastSuccessMs: undefined, failedInARow: 0, datasets: [] };

/** Most histories end after a few records, so that few records are read. */
const STEPS = [10, 100, 1000];

/** Reads as many records as it needs. `job`: the name of the job, else the verb. Rejects with errors of the system. */
export async function readHistory(paths: LakePaths, job: string): Promise<RunHistory> {
  let history = NO_HISTORY;
  for (const most of STEPS) {
    const { runs } = await readRuns(paths, most);
    history = historyOf(runs.toReversed(), job);
    if (runs.length < most || history.lastSuccessMs !== undefined) break;
  }
  return history;
}

/** `runs`: newest first. */
function historyOf(runs: readonly RunRecord[], job: string): RunHistory {
  const own = runs.filter((run) => (run.job ?? run.verb) === job);
  const success = own.find(({ summary }) => summary.exitCode === 0);
  const well = own.findIndex(({ summary }) => summary.outcomes.failed === 0);
  const datasets = new Map<string, DatasetFigures>();
  for (const { summary } of own) {
    for (const figures of summary.datasets) {
      const name = `${figures.market} ${figures.dataset}`;
      const newer = datasets.get(name);
      const newestEndMs = latest(newer?.newestEndMs, figures.newestEndMs);
      datasets.set(name, { ...(newer ?? figures), newestEndMs });
    }
  }
  return {
    lastSuccessMs: success === undefined ? undefined : Date.parse(success.endedAt),
    failedInARow: well < 0 ? own.length : well,
    datasets: [...datasets.values()],
  };
}

/** The later time; null if there is none. */
export function latest(one: number | null | undefined, other: number | null | undefined): number | null {
  const most = Math.max(one ?? Number.NEGATIVE_INFINITY, other ?? Number.NEGATIVE_INFINITY);
  return Number.isFinite(most) ? most : null;
}
