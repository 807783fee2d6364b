/** The data of runs in the page: the chosen run, the history of the lake, and the delays of publication. */
import type { RunRecord } from '../monitor/run-record.js';

/** Runs in the history, at most. */
const MOST_HISTORY = 100;

type Summary = RunRecord['summary'];

interface PastRun {
  readonly id: string;
  readonly verb: string;
  readonly job: string | null;
  readonly startedAt: string;
  readonly elapsedMs: number;
  readonly outcomes: Summary['outcomes'];
  readonly requests: number;
  readonly retries: number;
  readonly bytes: number;
  readonly rows: number;
  readonly changed: number;
  readonly withdrawn: number;
  readonly shorter: number;
  readonly exitCode: number;
}

/** The delays of a dataset over the runs, in milliseconds. */
interface Publication {
  readonly market: string;
  readonly dataset: string;
  /** The newest period that the lake holds according to the runs. */
  readonly newest: string | null;
  readonly newestEndMs: number | null;
  readonly lastMs: number | null;
  readonly medianMs: number | null;
  readonly mostMs: number | null;
  readonly runs: number;
}

export interface RunData {
  /** Null if the lake has no record of a run. */
  readonly run: RunRecord | null;
  /** Oldest first. */
  readonly history: readonly PastRun[];
  readonly publication: readonly Publication[];
}

/** `runs`: oldest first. */
export function runData(run: RunRecord | undefined, runs: readonly RunRecord[]): RunData {
  const latest = runs.slice(-MOST_HISTORY);
  return { run: run ?? null, history: latest.map(pastRun), publication: publications(latest) };
}

function pastRun({ id, verb, job, startedAt, summary }: RunRecord): PastRun {
  const { elapsedMs, outcomes, requests, network, bytes, rows, changed, withdrawn, shorter, exitCode } =
    summary;
  return {
    id,
    verb,
    job: job ?? null,
    startedAt,
    elapsedMs,
    outcomes,
    requests,
    retries: network.retries.total,
    bytes,
    rows,
    changed,
    withdrawn,
    shorter,
    exitCode,
  };
}

type Figures = Summary['datasets'][number];

function publications(runs: readonly RunRecord[]): Publication[] {
  const found = new Map<string, Figures[]>();
  for (const { summary } of runs)
    for (const figures of summary.datasets) {
      const name = `${figures.market} ${figures.dataset}`;
      const others = found.get(name);
      if (others === undefined) found.set(name, [figures]);
      else others.push(figures);
    }
  return [...found.values()].map((figures) => {
    const delays = figures.flatMap(({ publicationDelayMs }) => publicationDelayMs ?? []);
    const sorted = delays.toSorted((a, b) => a - b);
    const newest = figures
      .filter(({ newestEndMs }) => newestEndMs !== null)
      .toSorted((a, b) => (a.newestEndMs ?? 0) - (b.newestEndMs ?? 0))
      .at(-1);
    return {
      market: figures[0]?.market ?? '',
      dataset: figures[0]?.dataset ?? '',
      newest: newest?.newest ?? null,
      newestEndMs: newest?.newestEndMs ?? null,
      lastMs: delays.at(-1) ?? null,
      medianMs: sorted[Math.floor((sorted.length - 1) / 2)] ?? null,
      mostMs: sorted.at(-1) ?? null,
      runs: figures.length,
    };
  });
}
