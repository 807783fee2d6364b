/** `cryptodl export`: files for other programs from the lake. Failures and, with --dry-run, planned files go to stdout, the rest to stderr. */
import { writeText, writeData } from '../../terminal/write-data.js';
import { withSignals } from '../../run/verb/start-verb.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { absolutePath, printLines, tabbed, lakeFlag } from '../../text/printable.js';
import { usage } from '../../model/errors.js';
import { backingOf } from '../../files/backing.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { UnreadableFile } from '../../lake/catalogue/file-digests.js';
import { CSV } from './csv-files.js';
import { FREQTRADE } from './freqtrade.js';
import { LEAN } from './lean.js';
import { NAUTILUS } from './nautilus-script.js';
import { TARDIS } from './tardis.js';
import type { ExportProgram, SeriesRows } from './export-file.js';
import { exportGroups, selectExport, type ExportSelection, type ExportCommand } from './select-export.js';
import { targetFolder, exportLake } from './export-lake.js';
import { ExportTally, FAILURES, closing } from './export-tally.js';
import { listText, countText } from '../../model/units.js';
import { progressPrinter } from '../../run/verb/items.js';
import { seriesName } from '../../model/task.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { DAY_SECONDS } from '../../model/units.js';
import { readableStates } from '../../plan/select/held-series.js';
import { gapText } from '../../lake/catalogue/gap-texts.js';

const PROGRAMS: readonly ExportProgram[] = [FREQTRADE, TARDIS, LEAN, CSV, NAUTILUS];

/** The operand is the program. */
export async function exportFor(command: ExportCommand): Promise<ExitCode> {
  return withSignals(command, async (request) => {
    const selection = await selectExport(request, programOf(command.operand, request));
    const target = selection.program.script === undefined ? await targetFolder(selection) : undefined;
    if (!(await tellLacking(command, selection))) return exitCode({ lasting: true });
    return target === undefined ? printScript(command, selection) : writeFiles(command, selection, target);
  });
}

/** Throws usage errors, also for flags that the program does not read, and for a script about a lake in a bucket. */
function programOf(
  operand: string | undefined,
  { resolved: { options, origins }, surroundings }: VerbRequest<'out'>,
): ExportProgram {
  const program = PROGRAMS.find(({ name }) => name === operand);
  if (program === undefined)
    throw usage(
      `export needs a program to write for: ${PROGRAMS.map(({ name }) => name).join(', ')}`,
      'for example: cryptodl export freqtrade --target user_data/data/binance',
    );
  for (const { name, flags = [] } of PROGRAMS)
    for (const flag of flags)
      if (origins[flag] === 'flag' && program.flags?.includes(flag) !== true)
        throw usage(`--${flag} is for export ${name}, not for export ${program.name}`, `leave --${flag} out`);
  const isInBucket = backingOf(absolutePath(options.out, surroundings.home)) !== undefined;
  if (program.script !== undefined && isInBucket)
    throw usage(
      'the script reads local files, and this lake is in a bucket',
      'copy the lake, and name the copy with --out',
    );
  return program;
}

/** Prints the program that loads the committed files. Exit code 4 if a series cannot be read, or if there is no program because all are left out. */
async function printScript({ io, resolved }: ExportCommand, selection: ExportSelection): Promise<ExitCode> {
  const { request, program, catalogue } = selection;
  const tally = new ExportTally();
  const sources: SeriesRows[] = [];
  for await (const { items } of exportGroups(selection))
    for (const item of items) {
      if ('reason' in item) tally.add(item);
      for (const source of 'reason' in item ? [] : item.sources)
        try {
          const relation = await catalogue.relation([source], source.range);
          sources.push({ ...source, files: relation?.files ?? [] });
        } catch (error) {
          if (!(error instanceof UnreadableFile)) throw error;
          tally.add({ series: source.series, reason: error.message, isFault: true });
        }
    }
  printLines(io.stderr, tally.leftOutLines());
  const isRefused = resolved.options.requireComplete && tally.refused.length > 0;
  if (isRefused || sources.length === 0) {
    printLines(io.stderr, [isRefused ? NOTHING_EXPORTED : tally.nothingText()]);
    return exitCode({ lasting: true });
  }
  await writeText(io, program.script?.(sources, request.exchange) ?? '');
  return exitCode({ lasting: tally.hasFaults });
}

async function writeFiles(
  { io, resolved }: ExportCommand,
  selection: ExportSelection,
  target: string,
): Promise<ExitCode> {
  const { json, quiet, dryRun, requireComplete } = resolved.options;
  const tally = new ExportTally();
  const progress = progressPrinter(resolved.options, io);
  const startedAtMs = io.clock.monotonic();
  for await (const item of exportLake(selection, target)) {
    tally.add(item);
    progress(() => tally.text());
    if (json)
      await writeData(io, [
        'file' in item
          ? { event: 'file', ...item }
          : { event: 'left-out', ...item.series, reason: item.reason },
      ]);
    else if ('file' in item && (item.outcome === 'planned' || FAILURES.includes(item.outcome))) {
      const { outcome, file, text } = item;
      await writeData(io, [tabbed([outcome === 'planned' ? 'write' : outcome, file, text ?? []].flat())]);
    }
  }
  const elapsedMs = Math.round(io.clock.monotonic() - startedAtMs);
  const code = tally.exitCode(requireComplete);
  const { files, rows, bytes, refused } = tally;
  const summary = { dryRun, files, rows, bytes, leftOut: refused.length, elapsedMs, exitCode: code };
  if (json) await writeData(io, [{ event: 'summary', ...summary }]);
  printLines(io.stderr, [
    ...tally.leftOutLines(),
    ...(quiet || tally.empty.length === 0 ? [] : [`without rows: ${listText(tally.empty, 3)}`]),
    ...(quiet && code === 0 ? [] : closing(selection, tally, target, dryRun ? undefined : elapsedMs)),
  ]);
  return code;
}

const NOTHING_EXPORTED = 'nothing is exported, because --require-complete is given';

/** Lines for series that lack data. */
const MOST_LINES = 3;

/** Prints the data that the lake lacks, with --json also as events, except for a script. Resolves with false if --require-complete forbids the export. */
async function tellLacking({ io, resolved }: ExportCommand, selection: ExportSelection): Promise<boolean> {
  const { requireComplete, quiet, json } = resolved.options;
  const { request, root, program, selected, range, unread, catalogue } = selection;
  const covered = await readableStates(root, selected, request, range);
  const gapsOf = new Map(selected.map((series) => [series, missingOf(covered.get(series))]));
  for await (const { series, fault } of catalogue.series(requireComplete ? selected : []))
    if (fault !== undefined && gapsOf.get(series)?.length === 0) gapsOf.set(series, [fault]);
  // Bars lack what their source lacks.
  const lacking = [...gapsOf]
    .filter(([, gaps]) => gaps.length > 0)
    .sort(([a], [b]) => Number(a.dataset === 'bars') - Number(b.dataset === 'bars'));
  if (lacking.length > 0 && (!quiet || requireComplete)) {
    const lines = lacking.map(
      ([series, gaps]) => `the lake lacks ${seriesName(series)}: ${listText(gaps, 3)}`,
    );
    const more = countText(lacking.length - MOST_LINES, 'further series');
    if (lacking.length > MOST_LINES) lines.splice(MOST_LINES, lines.length, `the lake lacks data of ${more}`);
    printLines(io.stderr, [...lines, `all gaps: cryptodl coverage${lakeFlag(root)}`]);
  }
  const twice = new Set([...covered.values()].filter(isListedTwice).map(({ series }) => series.symbol));
  if (twice.size > 0)
    request.observer.warn(
      `${listText(twice)}: no rows for 30 days or more between others; after a second listing under the same name, prices do not continue`,
    );
  const events = lacking.map(([series, gaps]) => ({ event: 'lacking', ...series, gaps }));
  if (json && program.script === undefined) await writeData(io, events);
  if (!requireComplete || lacking.length + unread.length === 0) return true;
  printLines(io.stderr, [NOTHING_EXPORTED]);
  return false;
}

function missingOf(covered: SeriesStates | undefined): string[] {
  if (covered === undefined) return ['all rows: the lake has no Parquet or CSV files of it that can be read'];
  return covered.gaps.filter(({ isMissing }) => isMissing).map((gap) => gapText(gap, covered));
}

/** Whether the series has no rows for 30 days or more, and rows before and after. */
function isListedTwice({ firstInstant, lastInstant, dayStartSeconds, gaps }: SeriesStates): boolean {
  const secondsOf = (instant = ''): number => Date.parse(instant) / 1000 - dayStartSeconds;
  const [start, end] = [secondsOf(firstInstant), secondsOf(lastInstant)];
  return gaps.some(
    ({ fromSeconds, toSeconds }) =>
      toSeconds - fromSeconds >= 30 * DAY_SECONDS && fromSeconds > start && toSeconds <= end,
  );
}
