/** The series of the open orders of a lake, with the symbols that their globs select since. */
import { findDataset } from '../../exchange/exchange-spec.js';
import { cadencesOf } from '../../exchange/keys.js';
import { lakePaths } from '../../lake/layout.js';
import { readOrders } from '../../lake/orders.js';
import { memoized } from '../../model/by-name.js';
import { parseDay, dayText } from '../../model/calendar.js';
import { isNoAnswer, toCryptodlError } from '../../model/errors.js';
import type { Market } from '../../model/task.js';
import { shard, isInShard } from '../options/shard.js';
import { isExactName } from '../options/symbols.js';
import type { SelectedSeries } from '../series-request.js';
import type { Range } from './date-range.js';
import { inKeyOrderOf, listedSymbols } from './choose-symbols.js';
import { isOfQuotes, isOfGlobs } from './match-symbols.js';
import { offerOf } from './rest-offer.js';
import type { ChosenDataset } from './select-datasets.js';
import type { SymbolContext, DownloadVerb } from './selection.js';
import { withStarts, type Order } from '../../lake/order.js';
import type { OrderChange } from '../../lake/change-orders.js';
import { isListingFault } from '../../exchange/listing.js';

/** A request for each series of an open order, and the change of the orders whose globs select further symbols now. */
export async function orderedAnew(
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
