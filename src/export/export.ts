/** `cryptodl export`: files for other programs from the lake. Failures and, with --dry-run, planned files go to stdout, the rest to stderr. */
import { progressPrinter, runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { bytesText, countText, durationText, numberText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import { nearest } from '../text/did-you-mean.js';
import { printLines, shownPath, tabbed } from '../text/printable.js';
import { CSV } from './csv-files.js';
import { refuseOtherFlags, settingsOf } from './engine-settings.js';
import type { Engine } from './export-file.js';
import { exportLake } from './export-lake.js';
import type { ExportedFile, FileOutcome } from './export-lake.js';
import { exportScript } from './export-script.js';
import { FREQTRADE } from './freqtrade.js';
import { firstOfKind, rangeOf, tellLacking } from './lacking.js';
import { LEAN } from './lean.js';
import { NAUTILUS } from './nautilus-script.js';
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
  if (operand === NAUTILUS.name) return exportScript(run, request);
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
  const first = firstOfKind();
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
      else if (file.outcome === 'empty' && !options.quiet)
        printLines(
          io.stderr,
          first(file.outcome, `without rows: ${file.file}`, 'without rows: more files; --json lists all'),
        );
    },
    onRefused: (refused) => {
      const { reason, series, isFault } = refused;
      tally.leftOut += 1;
      tally.faults += isFault === true ? 1 : 0;
      if (options.json) print({ event: 'left-out', ...series, reason });
      printLines(
        io.stderr,
        first(reason, `left out: ${seriesName(series)}: ${reason}`, `left out: more series: ${reason}`),
      );
    },
  });
  await printed;
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  const exitCode = exitCodeOf(tally, options.requireComplete);
  if (options.json)
    await writeData(io, [
      { event: 'summary', dryRun: options.dryRun, ...tally.counts(), elapsedMs, exitCode },
    ]);
  if (!options.quiet || exitCode !== 0)
    printLines(io.stderr, closing(engine, tally, { target, elapsedMs, isPlan: options.dryRun }));
  return exitCode;
}

const FAILURES: readonly FileOutcome[] = ['foreign', 'narrower', 'unreadable', 'failed'];

class Tally {
  readonly #files: Partial<Record<FileOutcome, number>> = {};
  rows = 0;
  bytes = 0;
  repeated = 0;
  leftOut = 0;
  /** Series of `leftOut` because of which the export fails. */
  faults = 0;

  add({ outcome, rows, bytes, repeated }: ExportedFile): void {
    this.#files[outcome] = this.of(outcome) + 1;
    if (outcome !== 'written') return;
    this.rows += rows;
    this.bytes += bytes;
    this.repeated += repeated;
  }

  of(...outcomes: readonly FileOutcome[]): number {
    return outcomes.reduce((sum, outcome) => sum + (this.#files[outcome] ?? 0), 0);
  }

  /** Also files that are not written. */
  get filesWithRows(): number {
    return this.of('written', 'unchanged', 'planned', ...FAILURES);
  }

  counts(): object {
    const { rows, bytes, repeated, leftOut } = this;
    return { files: this.#files, rows, bytes, repeated, leftOut };
  }

  text(): string {
    return `${countText(this.of('written'), 'file')} written (${bytesText(this.bytes)}, ${numberText(this.rows)} rows)`;
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
  if (tally.repeated > 0)
    lines.push(`${countText(tally.repeated, 'row')} left out, because the row before had the same time`);
  if (!isPlan && tally.of('written') > 0) lines.push(...notes);
  if (tally.of(...FAILURES) > 0)
    lines.push(`next  cryptodl export ${name} again, after the reasons above are removed`);
  return lines;
}
