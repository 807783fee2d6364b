/** `cryptodl export`: files for other programs from the lake. Failures and, with --dry-run, planned files go to stdout, the rest to stderr. */
import { openCatalogue } from '../catalogue/catalogue.js';
import type { Catalogue } from '../catalogue/catalogue.js';
import { UnreadableFile } from '../catalogue/file-digests.js';
import { progressPrinter, runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData, writeText } from '../cli/write-data.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { bytesText, countText, durationText, listText, numberText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import { nearest } from '../text/did-you-mean.js';
import { isMirror } from '../text/mirror-roots.js';
import { absolutePath, printLines, shownPath, tabbed } from '../text/printable.js';
import { CSV } from './csv-files.js';
import { refuseOtherFlags, settingsOf } from './engine-settings.js';
import type { Engine, Refused, RowSource } from './export-file.js';
import { exportLake, isHeld, readSources } from './export-lake.js';
import type { ExportedFile, FileOutcome } from './export-lake.js';
import { FREQTRADE } from './freqtrade.js';
import { NOTHING_EXPORTED, rangeOf, tellLacking } from './lacking.js';
import { LEAN } from './lean.js';
import { NAUTILUS, nautilusScript, refuseOthers } from './nautilus-script.js';
import { selectExport, targetFolder } from './select-export.js';
import { TARDIS } from './tardis.js';

const ENGINES: readonly Engine[] = [FREQTRADE, TARDIS, LEAN, CSV];

/** `operand` is the engine. */
export async function exportFor(operand: string | undefined, run: LookUp): Promise<ExitCode> {
  return runVerb(run, (request) => exportNow(operand, run, request));
}

async function exportNow(operand: string | undefined, run: LookUp, request: VerbRequest): Promise<ExitCode> {
  const names = [...ENGINES, NAUTILUS].map(({ name }) => name);
  if (operand === undefined)
    throw usage(
      `export needs a program to write for: ${names.join(', ')}`,
      'for example: cryptodl export freqtrade --target user_data/data/binance',
    );
  if (operand === NAUTILUS.name) return printScript(run, request);
  const engine = ENGINES.find(({ name }) => name === operand);
  if (engine === undefined) {
    const near = nearest(operand, names) ?? names.find((name) => name.startsWith(operand));
    throw usage(
      `export: "${operand}" is not one of ${names.join(', ')}`,
      near === undefined ? undefined : `did you mean ${near}?`,
    );
  }
  refuseOtherFlags(operand, request);
  return exportFiles(engine, run, request);
}

async function exportFiles(engine: Engine, run: LookUp, request: VerbRequest): Promise<ExitCode> {
  const { io } = run;
  const { options } = run.resolved;
  const target = await targetFolder(engine.name, request);
  const settings = await settingsOf(request);
  const range = rangeOf(request);
  const selection = await selectExport(request, engine);
  if (!(await tellLacking(run, request, { selection, range, isJson: options.json }))) return 4;
  const tally = new Tally();
  const progress = progressPrinter(options, io);
  const startedAt = io.clock.monotonic();
  let printed: Promise<unknown> = Promise.resolve();
  const print = (line: object | string): void => {
    printed = printed.then(() => writeData(io, [line]));
  };
  await exportLake({
    request,
    engine,
    settings,
    selected: selection.selected,
    range,
    target,
    onFile: (file) => {
      tally.add(file);
      progress(() => tally.text());
      if (options.json) print({ event: 'file', ...file });
      else if (FAILURES.includes(file.outcome) || file.outcome === 'planned') print(lineOf(file));
    },
    onRefused: (refused) => {
      tally.refuse(refused);
      if (options.json) print({ event: 'left-out', ...refused.series, reason: refused.reason });
    },
  });
  await printed;
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  const exitCode = exitCodeOf(tally, options.requireComplete);
  if (options.json)
    await writeData(io, [
      { event: 'summary', dryRun: options.dryRun, ...tally.counts(), elapsedMs, exitCode },
    ]);
  printLines(io.stderr, tally.leftOutLines());
  if (!options.quiet) printLines(io.stderr, tally.emptyLines());
  if (!options.quiet || exitCode !== 0)
    printLines(io.stderr, closing(engine, tally, { target, elapsedMs, isPlan: options.dryRun }));
  return exitCode;
}

/** Prints a Python program that loads the committed files of the series. Exit code 4 if a series cannot be read, or if there is no program because all are left out. */
async function printScript({ io, ...run }: LookUp, request: VerbRequest): Promise<ExitCode> {
  const { source, resolved, signal } = request;
  const root = localRoot(request);
  const range = rangeOf(request);
  refuseOtherFlags(NAUTILUS.name, request);
  const selection = await selectExport(request, { ...NAUTILUS, onlyNamed: [], anyInterval: [] });
  refuseOthers(selection.selected, source);
  if (resolved.origins.target === 'flag')
    throw usage(
      'export nautilus-loader prints a script and writes no files, so --target is not used',
      'redirect the output: > load_nautilus.py',
    );
  // The script is the only text of stdout.
  if (!(await tellLacking({ io, ...run }, request, { selection, range, isJson: false }))) return 4;
  const catalogue = openCatalogue(root, source, signal);
  const tally = new Tally();
  const sources: RowSource[] = [];
  for await (const read of readSources(catalogue, selection.selected, range)) {
    const found = 'reason' in read ? read : await soundSource(catalogue, read);
    if ('reason' in found) tally.refuse(found);
    else sources.push(found);
  }
  printLines(io.stderr, tally.leftOutLines());
  if (resolved.options.requireComplete && tally.leftOut > 0) printLines(io.stderr, [NOTHING_EXPORTED]);
  if (sources.length === 0 || (resolved.options.requireComplete && tally.leftOut > 0)) return 4;
  await writeText(io, nautilusScript(sources, source, range));
  return tally.faults > 0 ? 4 : 0;
}

/** The absolute folder of the lake. Throws a usage error for a lake in a bucket. */
function localRoot({ resolved, surroundings }: VerbRequest): string {
  const root = absolutePath(resolved.options.out, surroundings.home);
  if (isMirror(root))
    throw usage(
      'the script reads local files, and this lake is in a bucket',
      'copy the lake, and name the copy with --out',
    );
  return root;
}

/** The source with the files that can have rows of the range. */
async function soundSource(catalogue: Catalogue, source: RowSource): Promise<RowSource | Refused> {
  const { series, range } = source;
  try {
    const relation = isHeld(source) ? await catalogue.relation([source], range) : undefined;
    if (relation === undefined) return { series, reason: 'the lake has none of these days' };
    return { ...source, files: relation.files };
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    return { series, reason: error.message, isFault: true };
  }
}

const FAILURES: readonly FileOutcome[] = ['foreign', 'unreadable', 'failed'];

class Tally {
  readonly #files: Partial<Record<FileOutcome, number>> = {};
  readonly #empty: string[] = [];
  /** Series that are left out, by reason. */
  readonly #refused = new Map<string, string[]>();
  rows = 0;
  bytes = 0;
  leftOut = 0;
  /** Series of `leftOut` because of which the export fails. */
  faults = 0;

  add({ outcome, file, rows, bytes }: ExportedFile): void {
    this.#files[outcome] = this.of(outcome) + 1;
    if (outcome === 'empty') this.#empty.push(file);
    if (outcome !== 'written') return;
    this.rows += rows;
    this.bytes += bytes;
  }

  refuse({ reason, series, isFault }: Refused): void {
    this.#refused.set(reason, [...(this.#refused.get(reason) ?? []), seriesName(series)]);
    this.leftOut += 1;
    this.faults += isFault === true ? 1 : 0;
  }

  of(...outcomes: readonly FileOutcome[]): number {
    return outcomes.reduce((sum, outcome) => sum + (this.#files[outcome] ?? 0), 0);
  }

  /** Also files that are not written. */
  get filesWithRows(): number {
    return this.of('written', 'unchanged', 'planned', ...FAILURES);
  }

  counts(): object {
    const { rows, bytes, leftOut } = this;
    return { files: this.#files, rows, bytes, leftOut };
  }

  text(): string {
    return `${countText(this.of('written'), 'file')} written (${bytesText(this.bytes)}, ${numberText(this.rows)} rows)`;
  }

  leftOutLines(): string[] {
    return [...this.#refused].map(([reason, names]) => `left out: ${listText(names, 3)}: ${reason}`);
  }

  emptyLines(): string[] {
    return this.#empty.length === 0 ? [] : [`without rows: ${listText(this.#empty, 3)}`];
  }
}

function lineOf({ outcome, file, text }: ExportedFile): string {
  return tabbed([outcome === 'planned' ? 'write' : outcome, file, ...(text === undefined ? [] : [text])]);
}

function exitCodeOf(tally: Tally, isComplete: boolean): ExitCode {
  if (tally.of(...FAILURES) - tally.of('failed') + tally.faults > 0 || (isComplete && tally.leftOut > 0))
    return 4;
  if (tally.of('failed') > 0) return 3;
  return tally.filesWithRows === 0 ? 4 : 0;
}

function closing(
  { name, notes }: Engine,
  tally: Tally,
  {
    target,
    elapsedMs,
    isPlan,
  }: { readonly target: string; readonly elapsedMs: number; readonly isPlan: boolean },
): string[] {
  const parts = [
    isPlan ? `${countText(tally.of('planned'), 'file')} to write` : tally.text(),
    ...(tally.of('unchanged') > 0 ? [`${numberText(tally.of('unchanged'))} unchanged`] : []),
    ...(tally.of('empty') > 0 ? [`${numberText(tally.of('empty'))} without rows`] : []),
    ...(tally.leftOut > 0 ? [`${numberText(tally.leftOut)} left out`] : []),
    ...(tally.of(...FAILURES) > 0 ? [`${numberText(tally.of(...FAILURES))} not written`] : []),
  ];
  const lines = [
    `${parts.join('; ')}${isPlan ? '' : ` in ${durationText(elapsedMs)}`}: ${shownPath(target)}`,
  ];
  if (tally.filesWithRows === 0)
    lines.push(
      tally.leftOut > 0
        ? 'nothing is exported, because all series are left out'
        : 'nothing is exported, because the lake has no rows of these series in the range; cryptodl coverage shows its days',
    );
  if (!isPlan && tally.of('written') > 0) lines.push(...notes);
  if (tally.of(...FAILURES) > 0)
    lines.push(`next  cryptodl export ${name} again, after the reasons above are removed`);
  return lines;
}
