/** `vision` and `metrics` without --symbols: continue each series of the lake from its first gap. */
import { join } from 'node:path';
import { isDue } from '../../lake/absences.js';
import { dayOf, dayText, parseDay } from '../../model/calendar.js';
import { usage, isNoAnswer, toCryptodlError } from '../../model/errors.js';
import { seriesFolder, lakePaths } from '../../lake/layout.js';
import { firstGap, readHeld } from '../../lake/catalogue/read-series.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';
import { continuedSettings } from '../../lake/settings.js';
import { heldSeries } from './held-series.js';
import type { SelectedSeries } from '../series-request.js';
import { isRangeGiven, type Range } from './date-range.js';
import { isOfQuotes, isOfGlobs } from './match-symbols.js';
import { FORMATS, seriesName, type Series, type Market } from '../../model/task.js';
import { endedText, endOfDataset } from '../../exchange/describe.js';
import { cadencesOf } from '../../exchange/keys.js';
import { findDataset, isArchived, isMetric, type DatasetSpec } from '../../exchange/exchange-spec.js';
import { isAll, type ChosenDataset } from './select-datasets.js';
import { givenSettings, settingsOf } from './selection.js';
import type { DownloadVerb, LakeContext, RunSelection, SymbolContext } from './selection.js';
import { emptyShardText, isInShard, shard } from '../options/shard.js';
import { offerOf } from './rest-offer.js';
import { readOrders } from '../../lake/orders.js';
import { memoized } from '../../model/by-name.js';
import { isExactName } from '../options/symbols.js';
import { inKeyOrderOf, listedSymbols } from './choose-symbols.js';
import { withStarts, type Order } from '../../lake/order.js';
import type { OrderChange } from '../../lake/change-orders.js';
import { isListingFault } from '../../exchange/listing.js';

const nothingToContinue = (out: string, verb: DownloadVerb): Error =>
  usage(
    `no --symbols, and ${out} holds no series to continue${verb === 'metrics' ? ' over REST' : ''}`,
    "name some: --symbols BTCUSDT,ETHUSDT or --symbols '*USDT'; cryptodl list symbols prints all symbols of the archive",
  );

/**
 * A request for each format of each series of the lake that the verb and the given flags select. Settings without a given
 * flag stay those of the series. Complete series of ended datasets get no request. Throws a usage error if no series is selected.
 */
export async function continueLake(
  context: SymbolContext,
  range: Range,
  given: ReadonlySet<string>,
  verb: DownloadVerb,
): Promise<Omit<RunSelection, 'verb' | 'hasListing'>> {
  const { options, paths, exchange, observer } = context;
  const warn = observer.warn.bind(observer);
  const requests: SelectedSeries[] = [];
  const ended = new Set<string>();
  let outside = 0;
  const held = new Set<string>();
  const { grown, ordered } = await orderedAnew(context, range, given, verb);
  for await (const series of heldSeries(paths.root, exchange, warn)) {
    const spec = findDataset(exchange, series.market, series.dataset);
    const isOfVerb = spec !== undefined && (verb === 'vision' ? isArchived(spec) : isMetric(spec));
    if (!isOfVerb || !isChosen(series, context, given)) continue;
    if (!isInShard(options.shard, exchange, series)) {
      outside += 1;
      continue;
    }
    const continued = await continuations(context, { series, spec }, range, { given, verb });
    // The manifest may record absences alone.
    for (const { settings } of continued) held.add(`${seriesName(series)} ${settings.format}`);
    for (const request of continued) {
      const [days] = request.ranges;
      if (days !== undefined && days.from < days.to) requests.push(request);
      else ended.add(endedText(exchange, series.market, series.dataset) ?? '');
    }
  }
  for (const request of ordered) {
    const { series, settings } = request;
    if (!isChosen(series, context, given) || held.has(`${seriesName(series)} ${settings.format}`)) continue;
    if (isInShard(options.shard, exchange, series)) requests.push(request);
    else outside += 1;
  }
  if (requests.length === 0 && ended.size === 0 && outside === 0) throw nothingToContinue(options.out, verb);
  return {
    requests,
    grown,
    what: 'all series',
    ...(options.shard === undefined || requests.length + ended.size > 0
      ? {}
      : { idle: emptyShardText(options.shard) }),
    range: isRangeGiven(options)
      ? range.text
      : `the first missing day of each series … ${dayText(range.to - 1)}`,
    notes: [...ended].map((text) => `ended      ${text}: complete`),
  };
}

function isChosen(series: Series, context: LakeContext, given: ReadonlySet<string>): boolean {
  const { options } = context;
  const areMeant = (['market', 'dataset', 'interval'] as const).every((name) => {
    const value = series[name];
    const values: readonly string[] = options[name];
    if (!given.has(name) || isAll(values)) return true;
    // --interval alone selects series with an interval; together with --dataset, it does not filter datasets without intervals.
    return value === undefined ? given.has('dataset') : values.includes(value);
  });
  if (!areMeant) return false;
  return isOfQuotes(series.symbol, options.quote);
}

async function continuations(
  context: LakeContext,
  { series, spec }: { readonly series: Series; readonly spec: DatasetSpec },
  range: Range,
  { given, verb }: { readonly given: ReadonlySet<string>; readonly verb: DownloadVerb },
): Promise<readonly SelectedSeries[]> {
  const { options, paths, exchange } = context;
  const folder = join(paths.root, seriesFolder(exchange.name, series));
  const manifest = await readHeld(paths.root, exchange, series);
  const selected = FORMATS.filter((format) => !given.has('format') || format === options.format);
  const formats = selected.filter(
    (format) =>
      manifest[format].size > 0 &&
      (verb === 'vision' ||
        options.join !== undefined ||
        manifest[format].spans().some(({ facts }) => isFromRest(facts))),
  );
  const settled = new Set([...givenSettings(given), 'format'] as const);
  const rest = offerOf(context, series, verb);
  return Promise.all(
    formats.map(async (format) => {
      const asked = { ...settingsOf(context, spec, series.interval), format };
      const settings = continuedSettings(asked, settled, manifest);
      const cadences = cadencesOf(spec, series.interval, settings.cadence);
      const isOutdated = (line: ObjectLine): boolean =>
        line.open === true || (isFromRest(line) && rest?.mode !== 'only');
      const isRequested = (day: number): boolean => {
        const absence = manifest.absences.ofDay(day);
        return absence === undefined || options.force || isDue(absence, context.nowMs);
      };
      const held = manifest[format];
      const gap =
        options.revisions === 'only'
          ? held.first()
          : await firstGap(held, format === 'zip' ? paths.root : folder, { isOutdated, isRequested });
      const from =
        isRangeGiven(options) || gap === undefined
          ? (range.from ?? -Infinity)
          : Math.min(gap, dayOf(context.nowMs, context.exchange) - 1);
      // Without a given range, no days after the end of a dataset are requested. Its last month may have days of which only the monthly object tells.
      let to = Math.min(
        range.to,
        (isRangeGiven(options) ? undefined : endOfDataset(spec, cadences)) ?? range.to,
      );
      while (to > from && manifest.absences.ofDay(to - 1)?.reason === 'dataset-ended') to -= 1;
      return { series, settings, cadences, ranges: [{ from, to }], rest };
    }),
  );
}

// The series of the open orders of a lake, with the symbols that their globs select since.

/** A request for each series of an open order, and the change of the orders whose globs select further symbols now. */
async function orderedAnew(
  context: SymbolContext,
  { to }: Range,
  given: ReadonlySet<string>,
  verb: DownloadVerb,
): Promise<{ readonly ordered: readonly SelectedSeries[]; readonly grown: OrderChange }> {
  const { exchange, options, paths } = context;
  const { orders } = await readOrders(lakePaths(paths.root));
  const ordered: SelectedSeries[] = [];
  const growths = new Map<string, (order: Order) => Order>();
  const once = memoized<readonly string[]>();
  const traded = (market: Market): Promise<readonly string[]> =>
    once(market, async () => (await context.rest.symbols(market)).map(({ symbol }) => symbol));
  for (const order of orders) {
    const { market, dataset, interval, settings, first } = order;
    const spec = findDataset(exchange, market, dataset);
    if (order.verb !== verb || order.last !== null || spec === undefined) continue;
    const layer = interval === undefined ? {} : { interval };
    const cadences = cadencesOf(spec, interval, settings.cadence);
    const ownShard = order.shard === undefined ? undefined : shard(order.shard, 'shard');
    const requestOf = (symbol: string): SelectedSeries => {
      const series = { market, dataset, ...layer, symbol };
      const rest = offerOf(context, series, verb);
      const ranges = [{ from: parseDay(first ?? '') ?? -Infinity, to }];
      return { series, settings, cadences, ranges, rest };
    };
    const available = await availableSymbols(context, order, { market, spec, cadences }, traded);
    const added = newSymbols(order, available)
      .map(requestOf)
      .filter(
        ({ series, rest }) =>
          (verb === 'vision' || rest !== undefined) && isInShard(ownShard, exchange, series),
      );
    if (!given.has('format') || settings.format === options.format)
      ordered.push(...order.symbols.map(requestOf), ...added);
    const [one] = added;
    const reach = one?.rest?.mode === 'only' ? dayText(one.rest.from) : undefined;
    const names = added.map(({ series }) => series.symbol);
    const grow = (now: Order): Order => {
      const symbols = [...new Set([...now.symbols, ...names])].sort();
      return withStarts({ ...now, symbols }, names, reach);
    };
    if (one !== undefined) growths.set(order.id, grow);
  }
  return { ordered, grown: (held) => held.flatMap((order) => growths.get(order.id)?.(order) ?? []) };
}

/** The symbols that the globs of an order select, and that it does not have yet. */
function newSymbols({ words, quote, symbols }: Order, available: readonly string[]): string[] {
  const known = new Set(symbols);
  return available.filter(
    (symbol) => !known.has(symbol) && isOfQuotes(symbol, quote) && isOfGlobs(words, symbol),
  );
}

/**
 * The symbols that the globs of an order may select; none, with a warning, if their host does not answer. `traded`: the symbols of
 * REST, which is asked once for each market.
 */
async function availableSymbols(
  context: SymbolContext,
  { verb, words, market }: Order,
  dataset: ChosenDataset,
  traded: (market: Market) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  if (words.every((word) => word.startsWith('!') || isExactName(word))) return [];
  try {
    if (verb === 'metrics') return await traded(market);
    return inKeyOrderOf(await listedSymbols(context, [dataset]));
  } catch (error) {
    if (!isNoAnswer(error) && !isListingFault(error)) throw error;
    context.observer.warn(
      `the symbols of ${market} ${dataset.spec.name} are not available (${toCryptodlError(error).message}): new ones of ${words.join(',')} are left out`,
    );
    return [];
  }
}
