/** Formats the records of runs: a table and trends for people, NDJSON for programs. */
import { durationText, numberText } from '../model/units.js';
import { percentText } from '../monitor/alerts.js';
import type { RunRecord } from '../monitor/run-record.js';
import { printable } from '../text/printable.js';
import { table } from '../text/table.js';
import type { TableColumn } from '../text/table.js';
import { fateText } from '../monitor/run-history.js';
import type { LastRun } from '../monitor/run-history.js';
import { FIGURES, runName } from './trends.js';
import type { FigureName, Trend } from './trends.js';

const NUMBERS = ['took', 'new', 'held', 'failed', 'retries', 'p95', 'exit'];
const COLUMNS: readonly TableColumn[] = [
  { title: 'started (UTC)' },
  { title: 'run' },
  ...NUMBERS.map((title) => ({ title, isNumber: true })),
];

/** The newest run first. `width`: columns of the terminal. */
export function runsTable(runs: readonly RunRecord[], width = Infinity): string[] {
  return table(COLUMNS, runs.toReversed().map(cellsOf), { width }).lines;
}

function cellsOf(run: RunRecord): string[] {
  const { outcomes, elapsedMs, exitCode } = run.summary;
  const retryRate = FIGURES.retryRate([run]);
  const p95Ms = FIGURES.p95Ms([run]);
  return [
    run.startedAt.slice(0, 16).replace('T', ' '),
    printable(runName(run)),
    durationText(elapsedMs),
    shortNumber(outcomes.ok + outcomes.partial),
    shortNumber(outcomes.skipped),
    shortNumber(outcomes.failed),
    retryRate === undefined ? '-' : percentText(retryRate),
    p95Ms === undefined ? '-' : durationText(p95Ms),
    String(exitCode),
  ];
}

/** `123,456`, `1.2M` */
function shortNumber(number: number): string {
  return number < 1e6 ? numberText(number) : `${(number / 1e6).toFixed(1)}M`;
}

/** Runs without a record, and the alerts of the newest run. */
export function noteLines(
  newest: RunRecord | undefined,
  starts: readonly LastRun[],
  nowMs: number,
): string[] {
  const alerts = newest?.summary.alerts ?? [];
  return [
    ...starts.map((start) => fateText(start, nowMs)),
    ...alerts.map(({ text, advice }) => `alert of the newest run: ${printable(`${text}: ${advice}`)}`),
  ];
}

const TREND_TEXTS: Readonly<Record<FigureName, readonly [title: string, text: (value: number) => string]>> = {
  retryRate: ['retry rate', percentText],
  failedObjects: ['failed objects', decimalText],
  p95Ms: ['latency (p95)', durationText],
  objectsPerSecond: ['objects per second', decimalText],
  limiterTriggersPerHour: ['limiter triggers per hour', decimalText],
  durationMs: ['duration', durationText],
};

/** `retry rate  0.4 %, last 30 runs 0.3 %` */
export function trendLines({ run, runs, figures }: Trend): string[] {
  const title = `newest run of ${printable(runName(run))}`;
  if (runs === 0) return [`${title}: no earlier run to compare with`];
  const before = `last ${runs} run${runs === 1 ? '' : 's'}`;
  return [
    `${title}, and the ${runs === 1 ? 'run' : `${runs} runs`} before it`,
    ...(Object.entries(TREND_TEXTS) as [FigureName, (typeof TREND_TEXTS)[FigureName]][]).map(
      ([name, [text, valueText]]) => {
        const [now, then] = [figures[name].newest, figures[name].before].map((value) =>
          value === null ? '-' : valueText(value),
        );
        return `  ${text.padEnd(25)}  ${now}, ${before} ${then}`;
      },
    ),
  ];
}

function decimalText(value: number): string {
  return value >= 100 ? numberText(Math.round(value)) : String(Number(value.toFixed(1)));
}

/** One object per run. */
export function runFields(run: RunRecord): object {
  const { id, verb, job, tool, startedAt, endedAt, summary } = run;
  const { elapsedMs, outcomes, requests, bytes, rows, network, alerts, exitCode } = summary;
  return {
    event: 'run',
    id,
    verb,
    job,
    tool,
    startedAt,
    endedAt,
    elapsedMs,
    outcomes,
    rows,
    bytes,
    requests,
    retryRate: FIGURES.retryRate([run]) ?? null,
    p95Ms: FIGURES.p95Ms([run]) ?? null,
    limiterTriggers: network.limiter.refusals,
    alerts,
    exitCode,
  };
}

export function trendFields({ run, runs, figures }: Trend): object {
  const { verb, job } = run;
  return { event: 'trend', verb, job, runs, figures };
}
