/** `cryptodl runs`: the newest runs of a lake, from the records that the runs left. A table for people, NDJSON for programs. */
import { writeData } from '../../terminal/write-data.js';
import { lakePaths, refuseFile } from '../../lake/layout.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { durationText, numberText } from '../../model/units.js';
import { shareText } from '../../run/monitor/alerts.js';
import { selectionOf } from '../../run/monitor/run-history.js';
import { fateText, isRunning, ofStart, runName } from '../../run/monitor/run-history.js';
import { readRuns, readStarts } from '../../run/monitor/run-files.js';
import type { RunRecord, RunStart } from '../../run/monitor/run-record.js';
import { homeOf } from '../../files/environment.js';
import type { OfflineCommand } from '../../run/verb/verb.js';
import {
  absolutePath,
  commandLine,
  lakeFlag,
  printable,
  printLines,
  shownPath,
} from '../../text/printable.js';
import { table, type TableColumn } from '../../text/table.js';
import { widthOf } from '../../text/wrap.js';

/** Records that are read: several commands may share the lake, and a killed run counts until a later one of its command has a record. */
const LEAST_READ = 400;

/** Resolves with 0. Throws a usage error if the lake has no record. */
export async function runs({ resolved, io }: OfflineCommand<'out' | 'last' | 'json'>): Promise<ExitCode> {
  const { out, last, json } = resolved.options;
  const paths = lakePaths(absolutePath(out, homeOf(io.environment)));
  refuseFile(paths.root);
  const found = await readRuns(paths, Math.max(last, LEAST_READ));
  if (found.warning !== undefined) printLines(io.stderr, [`warning: ${found.warning}`]);
  const running = await isRunning(paths);
  const starts = withoutRecord((await readStarts(paths)).starts, found.runs).map((start) =>
    ofStart(start, running),
  );
  const shown = found.runs.slice(-last);
  if (shown.length + starts.length === 0)
    throw usage(
      `${shownPath(paths.root)} has no record of a run`,
      'each download leaves one in the folder of --out, for example: cryptodl vision -s BTCUSDT -d 7',
    );
  const alerts = found.runs.at(-1)?.summary.alerts ?? [];
  const lines = json
    ? [...shown.map(fieldsOf), ...starts.map((start) => ({ event: 'start', ...start }))]
    : [
        ...(shown.length === 0 ? [] : [...tableOf(shown, widthOf(io.stdout)), '']),
        ...starts.map((start) => fateText(start, io.clock.now())),
        ...alerts.map(({ text, advice }) => `alert of the newest run: ${printable(`${text}: ${advice}`)}`),
        `whether the lake is complete: ${commandLine(['check'])}${lakeFlag(paths.root)}`,
      ];
  await writeData(io, lines);
  return 0;
}

/** The newest start of each command that has no later record: the run was killed, could not begin, or is running. */
function withoutRecord(starts: readonly RunStart[], records: readonly RunRecord[]): RunStart[] {
  const newest = new Map(records.map((run) => [selectionOf(run), run.id]));
  const later = starts.filter((start) => start.id > (newest.get(selectionOf(start)) ?? ''));
  return [...new Map(later.map((start) => [selectionOf(start), start])).values()];
}

const NUMBERS = ['took', 'new', 'held', 'failed', 'retries', 'p95', 'exit'];
const COLUMNS: readonly TableColumn[] = [
  { title: 'started (UTC)' },
  { title: 'run' },
  ...NUMBERS.map((title) => ({ title, isNumber: true })),
];

/** The newest run first. */
function tableOf(shown: readonly RunRecord[], width: number): string[] {
  const rows = shown.toReversed().map((run) => {
    const { outcomes, elapsedMs, exitCode } = run.summary;
    const { retryRate, p95Ms } = ratesOf(run);
    return [
      run.startedAt.slice(0, 16).replace('T', ' '),
      printable(runName(run)),
      durationText(elapsedMs),
      numberText(outcomes.ok + outcomes.partial),
      numberText(outcomes.skipped),
      numberText(outcomes.failed),
      retryRate === null ? '-' : shareText(retryRate),
      p95Ms === null ? '-' : durationText(p95Ms),
      String(exitCode),
    ];
  });
  return table(COLUMNS, rows, { width }).lines;
}

/** Null without a request. */
function ratesOf({ summary: { requests, network } }: RunRecord) {
  const { retries, attemptMs } = network;
  return {
    retryRate: requests === 0 ? null : retries.total / requests,
    p95Ms: attemptMs.p95 > 0 ? attemptMs.p95 : null,
  };
}

/** The object of `--json` for a run. */
function fieldsOf(run: RunRecord): object {
  const { id, verb, job, tool, startedAt, endedAt, summary } = run;
  const { elapsedMs, outcomes, requests, bytes, rows, network, alerts, exitCode } = summary;
  const about = { id, verb, job, tool, startedAt, endedAt, elapsedMs };
  const limiterTriggers = network.limiter.refusals;
  const counts = { outcomes, rows, bytes, requests, ...ratesOf(run), limiterTriggers };
  return { event: 'run', ...about, ...counts, alerts, exitCode };
}
