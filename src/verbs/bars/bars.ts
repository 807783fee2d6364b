/** `cryptodl bars`: makes bars from rows of the lake. Sends no request. */
import { progressPrinter } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { Command } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { exitCodeOfFindings } from '../../model/exit-code.js';
import type { ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import type { Series } from '../../model/task.js';
import { bytesText, countText, durationText, listText, numberText } from '../../model/units.js';
import type { HeldFlag, RangeFlag, SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { printLines, tabbed } from '../../text/printable.js';
import {
  canMake,
  chooseSource,
  chosenMonths,
  missingDays,
  noSourceText,
  parseBar,
  planMonths,
  selectBarSymbols,
  sourceName,
  sourceOf,
} from './source.js';
import type { BarMonth, BarRule, BarSource, SymbolSeries } from './source.js';
import { join } from 'node:path';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { unreadableFile } from '../../lake/catalogue/file-digests.js';
import { createEngine } from '../../convert/duckdb.js';
import type { Engine } from '../../convert/duckdb.js';
import { closeLake, openLake } from '../../run/session/open-lake.js';
import { openSession } from '../../run/session/session.js';
import type { LakeParts, Session } from '../../run/session/session.js';
import { backingOf } from '../../files/backing.js';
import { seriesFolder } from '../../lake/layout.js';
import { writeNotice } from '../../lake/notice.js';
import { fileSize } from '../../files/publish.js';
import { dayText, monthOf } from '../../model/calendar.js';
import { CryptodlError } from '../../model/errors.js';
import { makeBars, lostDays, writeMonth } from './make-bars.js';
import type { BarTools, BarTarget, MonthFigures } from './make-bars.js';

/** What was made, of one symbol or of all. The figures of months are 0 with --dry-run. */
interface Amounts extends MonthFigures {
  /** Days of the months that are made. */
  readonly days: number;
  /** Days between the first and the last day of the source, in months of the range, that the source does not have. They have no bars. */
  readonly missingDays: number;
}

interface BuiltSeries extends Series, Amounts {
  /**
   * `made`, or with --dry-run what would be made; `skipped`: the bars of the lake are up to date; `empty`: the source has no whole bar in
   * the range.
   */
  readonly outcome: 'made' | 'skipped' | 'empty' | 'failed';
  /** Why it failed, or why there is nothing to make. */
  readonly text?: string;
  /** `klines 1m` */
  readonly source?: string;
  readonly months: readonly string[];
}

const NOTHING = { days: 0, bars: 0, short: 0, bytes: 0, missingDays: 0 };

function addAmounts(sums: Record<keyof Amounts, number>, more: Partial<Amounts>): void {
  for (const name of Object.keys(NOTHING) as (keyof Amounts)[]) sums[name] += more[name] ?? 0;
}

type BarsFlag = SessionFlag | HeldFlag | RangeFlag | 'fill-empty' | 'force' | 'shard';

/** Resolves with 0; 4 if a symbol has no source or no readable one; 6 while another run writes to the lake. */
export async function bars(command: Command<BarsFlag | 'json' | 'quiet'>): Promise<ExitCode> {
  const { io, operand = '', resolved } = command;
  const { dryRun, json, quiet } = resolved.options;
  return withSignals(command, async (request) => {
    const startedAt = io.clock.monotonic();
    const progress = progressPrinter(resolved.options, io);
    let made = 0;
    const onMonth = (): void => {
      made += 1;
      progress(() => countText(made, 'month'));
    };
    const sums = { made: 0, skipped: 0, empty: 0, failed: 0, ...NOTHING, months: 0 };
    for await (const series of buildBars(parseBar(operand), request, onMonth)) {
      const { outcome, months } = series;
      sums[outcome] += 1;
      sums.months += months.length;
      addAmounts(sums, series);
      const planned = months.map((month) => tabbed(['make', seriesName(series), month]));
      const lines = json ? [{ event: 'series', ...series }] : dryRun && outcome === 'made' ? planned : [];
      if (!(await writeData(io, lines))) return 0;
      if (lines.length === 0 && (outcome === 'failed' || (!quiet && outcome !== 'skipped')))
        printLines(io.stderr, [lineOf(series)]);
    }
    const exitCode = exitCodeOfFindings({ lasting: sums.failed > 0 });
    const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
    if (json) await writeData(io, [{ event: 'summary', dryRun, ...sums, exitCode, elapsedMs }]);
    if (!quiet || sums.failed > 0) printLines(io.stderr, closing(sums, dryRun ? undefined : elapsedMs));
    return exitCode;
  });
}

function lineOf({ outcome, text = '', source = '', ...series }: BuiltSeries): string {
  if (outcome !== 'made') return `${seriesName(series)}: not made: ${text}`;
  const amounts = `${countText(series.bars, 'bar')} of ${countText(series.days, 'day')} in ${countText(series.months.length, 'month')}`;
  return [`${seriesName(series)}: ${amounts} made from ${source}`, ...lackTexts(series, source)].join('; ');
}

/** Days without bars; and bars that were made from some of their rows, together with bars that are absent because all of their rows are. */
function lackTexts({ missingDays: lacking, short }: Amounts, source: string): string[] {
  return [
    ...(lacking > 0 ? [`${source} lack ${countText(lacking, 'day')}`] : []),
    ...(short > 0 ? [`${countText(short, 'bar')} ${short === 1 ? 'lacks' : 'lack'} rows of the source`] : []),
  ];
}

/** `elapsedMs`: undefined with --dry-run. */
function closing(
  sums: Amounts & Readonly<Record<BuiltSeries['outcome'] | 'months', number>>,
  elapsedMs: number | undefined,
): string[] {
  const { made, skipped, empty, failed, months } = sums;
  const days = countText(sums.days, 'day');
  const amounts =
    elapsedMs === undefined
      ? `to make (${days} in ${countText(months, 'month')})`
      : `made (${countText(sums.bars, 'bar')} of ${days} in ${countText(months, 'file')}, ${bytesText(sums.bytes)})`;
  const parts = [
    ...(made > 0 ? [`${numberText(made)} series ${amounts}`] : []),
    ...(skipped > 0 ? [`nothing new for ${numberText(skipped)} series`] : []),
    ...(empty > 0 ? [`no rows to make bars from for ${numberText(empty)} series`] : []),
    ...(failed > 0 ? [`${numberText(failed)} series not made`] : []),
  ];
  const head = parts.join('; ') || 'no series';
  if (elapsedMs === undefined) return [head];
  const lacking = lackTexts(sums, 'the sources').join('; ');
  return [
    `${head} in ${durationText(elapsedMs)}`,
    ...(lacking === '' ? [] : [`${lacking}; cryptodl coverage shows gaps`]),
  ];
}

interface Build extends Pick<BarTools, 'catalogue'> {
  readonly rule: BarRule;
  readonly session: Session<'fill-empty' | 'force'>;
  /** Whether a month is in the range of the command. */
  readonly isChosen: (month: number) => boolean;
  /** Undefined with --dry-run. */
  readonly writing: { readonly tools: BarTools; readonly lake: Session & LakeParts } | undefined;
  readonly onMonth: () => void;
}

/**
 * Yields each symbol in the order of the lake. Rejects with usage errors, with `locked` while another run writes, and with errors of the
 * disk. `onMonth` is called for each month that is made.
 */
async function* buildBars(
  rule: BarRule,
  request: VerbRequest<BarsFlag>,
  onMonth: () => void,
): AsyncGenerator<BuiltSeries, void> {
  const session = openSession(request);
  const { paths, stop, exchange } = session;
  let opened: LakeParts | undefined;
  let engine: Engine | undefined;
  try {
    const symbols = await selectBarSymbols(rule, request);
    const catalogue = openCatalogue(paths.root, exchange, stop.signal);
    let writing: Build['writing'];
    if (!session.options.dryRun) {
      opened = await openLake(session, 'cryptodl bars');
      engine = createEngine({ tempFolder: opened.runFolder, signal: stop.signal });
      const tools = { duckdb: await engine.connect(), catalogue, exchange };
      writing = { tools, lake: { ...session, ...opened } };
    }
    const build: Build = { rule, session, isChosen: chosenMonths(request), catalogue, writing, onMonth };
    let hasMade = false;
    for (const symbol of symbols) {
      stop.signal.throwIfAborted();
      const built = await buildSymbol(build, symbol);
      hasMade ||= built.months.length > 0;
      yield built;
    }
    if (opened !== undefined && hasMade && exchange.terms !== undefined)
      await writeNotice(paths, exchange.terms.notice);
  } catch (error) {
    // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
    stop.signal.throwIfAborted();
    throw error;
  } finally {
    engine?.close();
    await session.close();
    if (opened !== undefined) await closeLake(paths, opened);
  }
}

async function buildSymbol(
  build: Build,
  { bars: series, spec, held: all }: SymbolSeries,
): Promise<BuiltSeries> {
  const { catalogue, rule, session, writing } = build;
  const nothing = { ...series, ...NOTHING, months: [] };
  const failed = (text: string): BuiltSeries => ({ ...nothing, outcome: 'failed', text });
  const usable = all.filter((one) => canMake(rule, one));
  if (usable.length === 0) return failed(noSourceText(rule, all));
  const sources: BarSource[] = [];
  let isHeld = false;
  for await (const held of catalogue.series(usable)) {
    isHeld = true;
    sources.push(...sourceOf(held));
  }
  if (!isHeld) return { ...nothing, outcome: 'empty', text: 'the lake has no rows of its source' };
  try {
    const folder = join(session.paths.root, seriesFolder(session.exchange.name, series));
    const { parquet: held } = await (writing?.lake ?? session).manifests.of(folder);
    const source = chooseSource(sources);
    if (source === undefined) return failed(`${usable.map(seriesName).join(', ')}: no files`);
    const name = sourceName(source.series);
    if (source.fault !== undefined) return { ...failed(`${name}: ${source.fault}`), source: name };
    // A candle without trades is a row of klines, so klines have nothing to fill.
    const isFilled = session.options.fillEmpty && source.series.dataset !== 'klines';
    return await buildSeries(build, { rule, source, isFilled, series, spec, folder, held });
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
    return failed(error.message);
  }
}

/** Makes the months that are not up to date. Rejects with errors of the disk, and when interrupted. */
async function buildSeries(build: Build, target: BarTarget): Promise<BuiltSeries> {
  const { isChosen, rule, session, writing } = build;
  const { series, source } = target;
  const name = sourceName(source.series);
  const all = planMonths(target);
  const months = await monthsToMake(build, all, target);
  const missing = missingDays(source).filter((day) => isChosen(monthOf(day)));
  const nothing = { ...series, ...NOTHING, missingDays: missing.length, source: name, months: [] };
  // A month is made as a whole, and would lose days that the source no longer has.
  const lost = session.options.force ? [] : months.flatMap((month) => lostDays(target, month));
  if (lost.length > 0) {
    const days = listText(lost.map(({ period }) => period).sort());
    const text = `its bars have days that ${name} does not have: ${days}; --force makes their months again without them`;
    return { ...nothing, outcome: 'failed', text };
  }
  if (months.length > 0 && writing !== undefined)
    return { ...nothing, ...(await makeMonths(build, writing, target, months)), missingDays: missing.length };
  if (months.length > 0) {
    const days = months.reduce((sum, month) => sum + month.days.length, 0);
    return { ...nothing, outcome: 'made', days, months: months.map(({ label }) => label) };
  }
  if (all.some(({ month }) => isChosen(month))) return { ...nothing, outcome: 'skipped' };
  const span = `${dayText(source.from)} … ${dayText(source.to - 1)}`;
  const text = `no bar of ${rule.interval} of the range lies within ${span}, the days of ${name}`;
  return { ...nothing, outcome: 'empty', text };
}

/** The months of the range whose file is not there with its size, or was made from something else. */
async function monthsToMake(
  { isChosen, session }: Build,
  all: readonly BarMonth[],
  { held, folder }: BarTarget,
): Promise<BarMonth[]> {
  const months: BarMonth[] = [];
  for (const month of all) {
    if (!isChosen(month.month)) continue;
    const last = held.inFile(month.file).length === 0 ? undefined : held.lastOfFile(month.file);
    const isUpToDate =
      last?.sha256 === month.sha256 && (await fileSize(join(folder, month.file))) === last.fileBytes;
    if (session.options.force || !isUpToDate) months.push(month);
  }
  return months;
}

/**
 * Each month is a commit of its own. Months before one whose rows cannot be read, or of whose rows no bars can be made, stay made. Rejects with
 * errors that do not concern the rows.
 */
async function makeMonths(
  { onMonth, session }: Build,
  { tools, lake }: NonNullable<Build['writing']>,
  target: BarTarget,
  months: readonly BarMonth[],
): Promise<Omit<BuiltSeries, keyof Series | 'source'>> {
  const { paths, stop, exchange } = session;
  const sums = { ...NOTHING };
  const made: string[] = [];
  const { series } = target.source;
  let unreadable: Error | undefined;
  for (const month of months) {
    stop.signal.throwIfAborted();
    try {
      await makeBars(tools, target, month);
    } catch (error) {
      unreadable = unreadableFile(error, paths.root);
      if (unreadable === undefined) throw error;
      break;
    }
    const figures = await writeMonth(tools.duckdb, lake, target, month);
    onMonth();
    if (figures === undefined) continue;
    made.push(month.label);
    addAmounts(sums, { days: month.days.length, ...figures });
  }
  await backingOf(target.folder)?.published(target.folder);
  const read = join(paths.root, seriesFolder(exchange.name, series));
  backingOf(read)?.release([read, target.folder]);
  const result = { ...sums, months: made };
  if (unreadable === undefined) return { ...result, outcome: made.length > 0 ? 'made' : 'skipped' };
  return { ...result, outcome: 'failed', text: `the rows of ${sourceName(series)}: ${unreadable.message}` };
}
