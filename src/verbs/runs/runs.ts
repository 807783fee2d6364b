/** `cryptodl runs`: the newest runs of a lake, from the records that the runs left. */
import { writeData } from '../../terminal/write-data.js';
import { lakePaths, refuseFile } from '../../lake/layout.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { isRunning, ofStart, selectionOf } from '../../run/monitor/run-history.js';
import { readRuns, readStarts } from '../../run/monitor/run-record.js';
import type { RunRecord, RunStart } from '../../run/monitor/run-record.js';
import { homeOf } from '../../files/environment.js';
import type { OfflineCommand } from '../../run/verb.js';
import { absolutePath, commandLine, lakeFlag, printLines, shownPath } from '../../text/printable.js';
import { widthOf } from '../../text/wrap.js';
import { noteLines, runFields, runsTable } from './print-runs.js';

/** Records that are read: several commands may share the lake, and a killed run counts until a later one of its command has a record. */
const LEAST_READ = 400;

/** Resolves with 0. Throws a usage error if the lake has no record. */
export async function runs({ resolved, io }: OfflineCommand): Promise<ExitCode> {
  const { out, last, json } = resolved.options;
  const paths = lakePaths(absolutePath(out, homeOf(io.environment)));
  refuseFile(paths.root);
  const found = await readRuns(paths, Math.max(last, LEAST_READ));
  if (found.warning !== undefined) printLines(io.stderr, [`warning: ${found.warning}`]);
  const running = await isRunning(paths, io.clock);
  const starts = withoutRecord((await readStarts(paths)).starts, found.runs).map((start) =>
    ofStart(start, running),
  );
  const shown = found.runs.slice(-last);
  if (shown.length + starts.length === 0)
    throw usage(
      `${shownPath(paths.root)} has no record of a run`,
      'each download leaves one in the folder of --out, for example: cryptodl vision -s BTCUSDT -d 7',
    );
  const lines = json
    ? [...shown.map(runFields), ...starts.map((start) => ({ event: 'start', ...start }))]
    : [
        ...(shown.length === 0 ? [] : [...runsTable(shown, widthOf(io.stdout)), '']),
        ...noteLines(found.runs.at(-1), starts, io.clock.now()),
        `whether the lake is complete: ${commandLine(['check'])}${lakeFlag(paths.root)}`,
      ];
  await writeData(io, lines);
  return 0;
}

/** The newest start of each command that has no later record: the run was killed, could not begin, or is running. */
function withoutRecord(starts: readonly RunStart[], records: readonly RunRecord[]): RunStart[] {
  const newest = new Map(records.map((run) => [selectionOf(run), run.id]));
  const found = new Map(
    starts
      .filter((start) => start.id > (newest.get(selectionOf(start)) ?? ''))
      .map((start) => [selectionOf(start), start]),
  );
  return [...found.values()];
}
