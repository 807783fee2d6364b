/** Formats the records of runs: a table for people, NDJSON for programs. */
import { durationText, numberText } from '../../model/units.js';
import { percentText } from '../../run/monitor/alerts.js';
import type { RunRecord } from '../../run/monitor/run-record.js';
import { printable } from '../../text/printable.js';
import { table } from '../../text/table.js';
import type { TableColumn } from '../../text/table.js';
import { fateText } from '../../run/monitor/run-history.js';
import type { LastRun } from '../../run/monitor/run-history.js';

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
  const { retryRate, p95Ms } = ratesOf(run);
  return [
    run.startedAt.slice(0, 16).replace('T', ' '),
    printable(runName(run)),
    durationText(elapsedMs),
    numberText(outcomes.ok + outcomes.partial),
    numberText(outcomes.skipped),
    numberText(outcomes.failed),
    retryRate === null ? '-' : percentText(retryRate),
    p95Ms === null ? '-' : durationText(p95Ms),
    String(exitCode),
  ];
}

/** The runs of one crontab line or job: `vision`, or `vision bars` for a job. */
function runName({ verb, job }: Pick<RunRecord, 'verb' | 'job'>): string {
  return job === undefined ? verb : `${verb} ${job}`;
}

/** Null without a request. */
function ratesOf({ summary: { requests, network } }: RunRecord) {
  const { retries, attemptMs } = network;
  return {
    retryRate: requests === 0 ? null : retries.total / requests,
    p95Ms: attemptMs.p95 > 0 ? attemptMs.p95 : null,
  };
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
    ...ratesOf(run),
    limiterTriggers: network.limiter.refusals,
    alerts,
    exitCode,
  };
}
