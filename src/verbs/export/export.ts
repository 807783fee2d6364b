/** `cryptodl export`: files for other programs from the lake. Failures and, with --dry-run, planned files go to stdout, the rest to stderr. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { UnreadableFile } from '../../lake/catalogue/file-digests.js';
import { progressPrinter } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { Command } from '../../run/verb/verb.js';
import { writeData, writeText } from '../../terminal/write-data.js';
import { usage } from '../../model/errors.js';
import { exitCodeOfFindings } from '../../model/exit-code.js';
import type { ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import { backingOf } from '../../files/backing.js';
import { bytesText, countText, durationText, listText, numberText } from '../../model/units.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { absolutePath, lakeFlag, printLines, shownPath, tabbed } from '../../text/printable.js';
import { CSV } from './csv-files.js';
import type { ExportProgram, Refused, RowSource } from './export-file.js';
import { exportGroups, exportLake, selectExport, targetFolder } from './export-lake.js';
import type { ExportFlag, ExportedFile, FileOutcome, Export } from './export-lake.js';
import { FREQTRADE } from './freqtrade.js';
import { LEAN } from './lean.js';
import { NAUTILUS } from './nautilus-script.js';
import { TARDIS } from './tardis.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { DAY_SECONDS } from '../../lake/catalogue/gap.js';
import { readableStates } from '../../plan/select/held-series.js';
import { gapText } from '../../lake/catalogue/series-table.js';

const PROGRAMS: readonly ExportProgram[] = [FREQTRADE, TARDIS, LEAN, CSV, NAUTILUS];

type ExportCommand = Command<ExportFlag | 'json' | 'quiet' | 'require-complete'>;

/** The operand is the program. */
export async function exportFor(command: ExportCommand): Promise<ExitCode> {
  return withSignals(command, async (request) => {
    const program = programOf(command.operand);
    refuseFlags(program, request);
    const given = await selectExport(request, program);
    const target = program.script === undefined ? await targetFolder(given) : undefined;
    if (!(await tellLacking(command, given))) return exitCodeOfFindings({ lasting: true });
    return target === undefined ? printScript(command, given) : writeFiles(command, given, target);
  });
}

function programOf(operand: string | undefined): ExportProgram {
  const names = PROGRAMS.map(({ name }) => name);
  const program = PROGRAMS.find(({ name }) => name === operand);
  if (program !== undefined) return program;
  throw usage(
    `export needs a program to write for: ${names.join(', ')}`,
    'for example: cryptodl export freqtrade --target user_data/data/binance',
  );
}

/** Throws usage errors for flags that the program does not read, and for a script about a lake in a bucket. */
function refuseFlags(
  program: ExportProgram,
  { resolved: { options, origins }, surroundings }: VerbRequest<'out'>,
): void {
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
}

async function writeFiles({ io, resolved }: ExportCommand, given: Export, target: string): Promise<ExitCode> {
  const { json, quiet, dryRun, requireComplete } = resolved.options;
  const tally = new Tally();
  const progress = progressPrinter(resolved.options, io);
  const startedAt = io.clock.monotonic();
  for await (const item of exportLake(given, target)) {
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
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  const exitCode = tally.exitCode(requireComplete);
  const { files, rows, bytes, leftOut } = tally;
  if (json)
    await writeData(io, [{ event: 'summary', dryRun, files, rows, bytes, leftOut, elapsedMs, exitCode }]);
  printLines(io.stderr, tally.leftOutLines());
  if (!quiet && tally.empty.length > 0) printLines(io.stderr, [`without rows: ${listText(tally.empty, 3)}`]);
  if (!quiet || exitCode !== 0)
    printLines(io.stderr, closing(given.program, tally, target, dryRun ? undefined : elapsedMs));
  return exitCode;
}

/** Prints the program that loads the committed files. Exit code 4 if a series cannot be read, or if there is no program because all are left out. */
async function printScript({ io, resolved }: ExportCommand, given: Export): Promise<ExitCode> {
  const { request, root, program } = given;
  const catalogue = openCatalogue(root, request.exchange, request.signal);
  const tally = new Tally();
  const sources: RowSource[] = [];
  for await (const { items } of exportGroups(given, catalogue))
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
  const isRefused = resolved.options.requireComplete && tally.leftOut > 0;
  if (isRefused || sources.length === 0) {
    printLines(io.stderr, [isRefused ? NOTHING_EXPORTED : tally.nothingText()]);
    return exitCodeOfFindings({ lasting: true });
  }
  await writeText(io, program.script?.(sources, request.exchange) ?? '');
  return exitCodeOfFindings({ lasting: tally.faults > 0 });
}

const FAILURES: readonly FileOutcome[] = ['foreign', 'unreadable', 'failed'];

class Tally {
  readonly files: Partial<Record<FileOutcome, number>> = {};
  readonly empty: string[] = [];
  /** Series that are left out, by reason. */
  readonly #refused = new Map<string, string[]>();
  rows = 0;
  bytes = 0;
  leftOut = 0;
  /** Series of `leftOut` because of which the export fails. */
  faults = 0;

  add(item: ExportedFile | Refused): void {
    if ('reason' in item) {
      const { reason, series, isFault } = item;
      this.#refused.set(reason, [...(this.#refused.get(reason) ?? []), seriesName(series)]);
      this.leftOut += 1;
      this.faults += isFault === true ? 1 : 0;
      return;
    }
    const { outcome, file, rows, bytes } = item;
    this.files[outcome] = this.of(outcome) + 1;
    if (outcome === 'empty') this.empty.push(file);
    if (outcome !== 'written') return;
    this.rows += rows;
    this.bytes += bytes;
  }

  of(...outcomes: readonly FileOutcome[]): number {
    return outcomes.reduce((sum, outcome) => sum + (this.files[outcome] ?? 0), 0);
  }

  /** Also files that are not written. */
  get filesWithRows(): number {
    return this.of('written', 'unchanged', 'planned', ...FAILURES);
  }

  text(): string {
    return `${countText(this.of('written'), 'file')} written (${bytesText(this.bytes)}, ${numberText(this.rows)} rows)`;
  }

  leftOutLines(): string[] {
    return [...this.#refused].map(([reason, names]) => `left out: ${listText(names, 3)}: ${reason}`);
  }

  nothingText(): string {
    return this.leftOut > 0
      ? 'nothing is exported, because all series are left out'
      : 'nothing is exported, because the lake has no rows of these series in the range; cryptodl coverage shows its days';
  }

  exitCode(isComplete: boolean): ExitCode {
    const hasFaults = this.of('foreign', 'unreadable') + this.faults > 0;
    const passing = this.of('failed') > 0;
    const isEmpty = !passing && this.filesWithRows === 0;
    return exitCodeOfFindings({ lasting: hasFaults || (isComplete && this.leftOut > 0) || isEmpty, passing });
  }
}

/** `elapsedMs`: undefined with --dry-run. */
function closing(
  { name, notes = [] }: ExportProgram,
  tally: Tally,
  target: string,
  elapsedMs: number | undefined,
): string[] {
  const counts = {
    unchanged: tally.of('unchanged'),
    'without rows': tally.of('empty'),
    'left out': tally.leftOut,
    'not written': tally.of(...FAILURES),
  };
  const parts = [
    elapsedMs === undefined ? `${countText(tally.of('planned'), 'file')} to write` : tally.text(),
    ...Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${numberText(count)} ${what}`] : [])),
  ];
  const time = elapsedMs === undefined ? '' : ` in ${durationText(elapsedMs)}`;
  return [
    `${parts.join('; ')}${time}: ${shownPath(target)}`,
    ...(tally.filesWithRows === 0 ? [tally.nothingText()] : []),
    ...(tally.of('written') > 0 ? notes : []),
    ...(counts['not written'] > 0
      ? [`next  cryptodl export ${name} again, after the reasons above are removed`]
      : []),
  ];
}

// The data of the selected series that the lake lacks, by the same day states as `check` and `coverage`.

const NOTHING_EXPORTED = 'nothing is exported, because --require-complete is given';

/** Lines for series that lack data. */
const MOST_LINES = 3;

/** Prints the data that the lake lacks, with --json also as events, except for a script. Resolves with false if --require-complete forbids the export. */
async function tellLacking({ io, resolved }: ExportCommand, given: Export): Promise<boolean> {
  const { requireComplete, quiet, json } = resolved.options;
  const { request, root, program, selected, range, unread } = given;
  const covered = await readableStates(root, selected, request, range);
  const gapsOf = new Map(selected.map((series) => [series, missingOf(covered.get(series))]));
  const catalogue = openCatalogue(root, request.exchange, request.signal);
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
function isListedTwice({ first = '', last = '', dayStartSeconds, gaps }: SeriesStates): boolean {
  const [start = NaN, end = NaN] = [first, last].map((iso) => Date.parse(iso) / 1000 - dayStartSeconds);
  return gaps.some(({ from, to }) => to - from >= 30 * DAY_SECONDS && from > start && to <= end);
}
