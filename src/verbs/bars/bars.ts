/** `cryptodl bars`: makes bars from rows of the lake. Sends no request. */
import { progressPrinter } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import { bytesText, countText, durationText, numberText } from '../../model/units.js';
import { printLines, tabbed } from '../../text/printable.js';
import { parseBar, type BarRule } from './bar-rule.js';
import { NOTHING_MADE, addAmounts, buildSeries } from './build-series.js';
import type { BarAmounts, BuiltSeries, Build } from './build-series.js';
import {
  nowMsOf,
  type HeldFlag,
  type RangeFlag,
  type SessionFlag,
  type VerbRequest,
} from '../../plan/options/verb-request.js';
import { join } from 'node:path';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { createEngine, type Engine } from '../../convert/duckdb.js';
import { closeLake, openLake } from '../../run/session/open-lake.js';
import { openSession, type LakeParts } from '../../run/session/session.js';
import { seriesFolder } from '../../lake/layout.js';
import { writeNotice } from '../../lake/notice.js';
import { monthOf } from '../../model/calendar.js';
import { CryptodlError } from '../../model/errors.js';
import { givenRange } from '../../plan/select/date-range.js';
import { canMake, chooseSource, noSourceText, selectBarSymbols, sourceName, sourceOf } from './source.js';
import type { BarSource, SymbolSeries } from './source.js';

/** Resolves with 0; 4 if a symbol has no source or no readable one; 6 while another run writes to the lake. */
export async function bars(command: VerbCall<BarsFlag | 'json' | 'quiet'>): Promise<ExitCode> {
  const { io, operand = '', resolved } = command;
  const { dryRun, json, quiet } = resolved.options;
  return withSignals(command, async (request) => {
    const startedAtMs = io.clock.monotonic();
    const progress = progressPrinter(resolved.options, io);
    let made = 0;
    const onMonth = (): void => {
      made += 1;
      progress(() => countText(made, 'month'));
    };
    const sums = { made: 0, skipped: 0, empty: 0, failed: 0, ...NOTHING_MADE, months: 0 };
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
    const code = exitCode({ lasting: sums.failed > 0 });
    const elapsedMs = Math.round(io.clock.monotonic() - startedAtMs);
    if (json) await writeData(io, [{ event: 'summary', dryRun, ...sums, exitCode: code, elapsedMs }]);
    if (!quiet || sums.failed > 0) printLines(io.stderr, closing(sums, dryRun ? undefined : elapsedMs));
    return code;
  });
}

function lineOf({ outcome, text = '', source = '', ...series }: BuiltSeries): string {
  if (outcome !== 'made') return `${seriesName(series)}: not made: ${text}`;
  const amounts = `${countText(series.bars, 'bar')} of ${countText(series.days, 'day')} in ${countText(series.months.length, 'month')}`;
  return [`${seriesName(series)}: ${amounts} made from ${source}`, ...lackTexts(series, source)].join('; ');
}

/** Days without bars; and bars that were made from some of their rows, together with bars that are absent because all of their rows are. */
function lackTexts({ missingDays: lacking, short }: BarAmounts, source: string): string[] {
  return [
    ...(lacking > 0 ? [`${source} lack ${countText(lacking, 'day')}`] : []),
    ...(short > 0 ? [`${countText(short, 'bar')} ${short === 1 ? 'lacks' : 'lack'} rows of the source`] : []),
  ];
}

/** `elapsedMs`: undefined with --dry-run. */
function closing(
  sums: BarAmounts & Readonly<Record<BuiltSeries['outcome'] | 'months', number>>,
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

type BarsFlag = SessionFlag | HeldFlag | RangeFlag | 'fill-empty' | 'force' | 'shard';

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
  { bars: series, spec, selected: all }: SymbolSeries,
): Promise<BuiltSeries> {
  const { catalogue, rule, session, writing } = build;
  const nothing = { ...series, ...NOTHING_MADE, months: [] };
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

/** Whether a month has days in the range of the command; true for all months without a range. */
function chosenMonths(request: VerbRequest<RangeFlag | 'now'>): (month: number) => boolean {
  const { exchange, resolved } = request;
  const { from, to } = givenRange(resolved.options, nowMsOf(request), exchange) ?? {};
  return (month) =>
    (from === undefined || month >= monthOf(from)) && (to === undefined || month <= monthOf(to - 1));
}
