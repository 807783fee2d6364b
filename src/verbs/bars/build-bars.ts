/** Makes the bars of each symbol from a source of the lake. */
import { seriesName } from '../../model/task.js';
import type { HeldFlag, RangeFlag, SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
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
import type { BarRule } from './bar-rule.js';
import { buildSeries, NOTHING, type Build, type BuiltSeries } from './build-series.js';

export type BarsFlag = SessionFlag | HeldFlag | RangeFlag | 'fill-empty' | 'force' | 'shard';

/**
 * Yields each symbol in the order of the lake. Rejects with usage errors, with `locked` while another run writes, and with errors of the
 * disk. `onMonth` is called for each month that is made.
 */
export async function* buildBars(
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

/** Whether a month has days in the range of the command; true for all months without a range. */
function chosenMonths(request: VerbRequest<RangeFlag | 'now'>): (month: number) => boolean {
  const { exchange, clock } = request;
  const { options } = request.resolved;
  const { from, to } = givenRange(options, options.nowMs ?? clock.now(), exchange) ?? {};
  return (month) =>
    (from === undefined || month >= monthOf(from)) && (to === undefined || month <= monthOf(to - 1));
}
