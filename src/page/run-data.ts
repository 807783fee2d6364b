/** The data of runs in the page: the chosen run, the history of the lake, and the delays of publication. */
import type { RunRecord } from '../monitor/run-record.js';

/** Runs in the history, at most. */
const MOST_HISTORY = 100;

/** `runs`: oldest first, as the history in the result. Without a record of a run, `run` is null. */
export function runData(run: RunRecord | undefined, runs: readonly RunRecord[]) {
  const latest = runs.slice(-MOST_HISTORY);
  return { run: run ?? null, history: latest.map(pastRun), publication: publications(latest) };
}

function pastRun({ id, verb, job, startedAt, summary }: RunRecord) {
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

type Figures = RunRecord['summary']['datasets'][number];

/** The newest period of each dataset that the lake holds according to the runs, and the delays of its publication in milliseconds. */
function publications(runs: readonly RunRecord[]) {
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
