/** The figures of a run compared with those of the runs before it. */
import { selectionOf } from '../monitor/run-history.js';
import type { RunRecord, RunStart } from '../monitor/run-record.js';

/** The runs of one crontab line or job, for people: `vision`, or `vision bars` for a job. */
export function runName({ verb, job }: Pick<RunRecord, 'verb' | 'job'>): string {
  return job === undefined ? verb : `${verb} ${job}`;
}

/** A figure of several runs; undefined if none of them has it. */
type FigureOf = (runs: readonly RunRecord[]) => number | undefined;

/** Rates are those of all runs together, so that a run with three requests does not count as much as one with thousands. */
export const FIGURES = {
  retryRate: (runs) =>
    ratio(
      sumOf(runs, ({ summary }) => summary.network.retries.total),
      sumOf(runs, ({ summary }) => summary.requests),
    ),
  failedObjects: (runs) => meanOf(runs, ({ summary }) => summary.outcomes.failed),
  p95Ms: (runs) =>
    meanOf(
      runs.filter(({ summary }) => summary.network.attemptMs.p95 > 0),
      ({ summary }) => summary.network.attemptMs.p95,
    ),
  objectsPerSecond: (runs) => {
    const working = runs.filter(({ summary }) => written(summary) > 0);
    const seconds = sumOf(working, ({ summary }) => summary.times.workMs) / 1000;
    return ratio(
      sumOf(working, ({ summary }) => written(summary)),
      seconds,
    );
  },
  limiterTriggersPerHour: (runs) =>
    ratio(
      sumOf(runs, ({ summary }) => summary.network.limiter.refusals),
      sumOf(runs, ({ summary }) => summary.elapsedMs) / 3_600_000,
    ),
  durationMs: (runs) => meanOf(runs, ({ summary }) => summary.elapsedMs),
} as const satisfies Readonly<Record<string, FigureOf>>;

export type FigureName = keyof typeof FIGURES;

export interface Trend {
  /** The newest run. */
  readonly run: RunRecord;
  /** The number of runs before it that count: of the same verb and job. */
  readonly runs: number;
  /** `before`: of these runs. Null for a figure that no run has. */
  readonly figures: Readonly<
    Record<FigureName, { readonly newest: number | null; readonly before: number | null }>
  >;
}

const TREND_RUNS = 30;

/** The trend of the newest run; `runs`: oldest first. */
export function trendOf(runs: readonly RunRecord[]): Trend | undefined {
  const run = runs.at(-1);
  if (run === undefined) return undefined;
  const before = runs
    .slice(0, -1)
    .filter((other) => runName(other) === runName(run))
    .slice(-TREND_RUNS);
  const figureOf = (name: FigureName): Trend['figures'][FigureName] => ({
    newest: FIGURES[name]([run]) ?? null,
    before: FIGURES[name](before) ?? null,
  });
  const names = Object.keys(FIGURES) as FigureName[];
  const figures = Object.fromEntries(names.map((name) => [name, figureOf(name)]));
  return { run, runs: before.length, figures: figures as Trend['figures'] };
}

/** The newest start of each command that has no later record: the run was killed, could not begin, or is running. */
export function withoutRecord(starts: readonly RunStart[], runs: readonly RunRecord[]): RunStart[] {
  const newest = new Map(runs.map((run) => [selectionOf(run), run.id]));
  const found = new Map(
    starts
      .filter((start) => start.id > (newest.get(selectionOf(start)) ?? ''))
      .map((start) => [selectionOf(start), start]),
  );
  return [...found.values()];
}

function written({ outcomes }: RunRecord['summary']): number {
  return outcomes.ok + outcomes.partial;
}

function sumOf(runs: readonly RunRecord[], of: (run: RunRecord) => number): number {
  return runs.reduce((sum, run) => sum + of(run), 0);
}

function meanOf(runs: readonly RunRecord[], of: (run: RunRecord) => number): number | undefined {
  return ratio(sumOf(runs, of), runs.length);
}

function ratio(part: number, whole: number): number | undefined {
  return whole === 0 ? undefined : part / whole;
}
