/** Chooses the selected symbols among those of REST. */
import { datasetsOf, isArchived, isMetric } from '../../exchange/exchange-spec.js';
import { byKey } from '../../exchange/keys.js';
import { readOrders } from '../../lake/orders.js';
import { CryptodlError } from '../../model/errors.js';
import type { Market } from '../../model/task.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { listedSymbols, selectListed } from './choose-symbols.js';
import { meantNames } from './match-symbols.js';
import { oneMarket } from './select-datasets.js';
import type { SymbolContext } from './selection.js';

/**
 * The selected symbols among those of REST. Throws usage errors, for example with the nearest name for a name that neither REST
 * nor the archive has. Without --join, a name that only the archive has is an error if no other symbol is selected.
 * `delisted`: given or ordered symbols that only the archive has; with --join, they are selected too.
 */
export async function chooseRestSymbols(context: SymbolContext, patterns: SymbolPatterns) {
  const market = oneMarket(context.exchange, context.options, 'metrics');
  const traded = await tradedSymbols(context, market, patterns.names);
  // The archive publishes the last days of a symbol after REST has dropped it.
  const isJoined = context.options.join !== undefined;
  const { orders } = isJoined ? await readOrders(context.paths) : { orders: [] };
  const ordered = orders
    .filter((order) => order.verb === 'metrics' && order.market === market)
    .flatMap(({ symbols }) => symbols);
  const live = meantNames(patterns.names, [...traded, ...ordered]);
  const known = new Set([...traded, ...ordered]);
  const archived = live.every((name) => known.has(name)) ? [] : await archivedSymbols(context, market);
  const gone = new Set([...ordered, ...archived].filter((name) => !traded.has(name)));
  const asked = meantNames([...new Set([...live, ...ordered])], [...traded, ...gone]);
  const delisted = asked.filter((name) => gone.has(name));
  const place = {
    what: market,
    owner: 'REST',
    listed: [...traded, ...(isJoined ? delisted : [])].sort(byKey),
    elsewhere: new Set(isJoined ? [] : delisted),
    takesElsewhere: false,
  };
  return { symbols: selectListed(context, { ...patterns, names: live }, place).symbols, delisted };
}

/**
 * The symbols of REST. If the archive may replace a failed request, its symbols count as traded, and so do the given names: the
 * archive lacks symbols that REST may have.
 */
async function tradedSymbols(
  context: SymbolContext,
  market: Market,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  try {
    const symbols = await context.rest.symbols(market);
    return new Set(symbols.map(({ symbol }) => symbol));
  } catch (error) {
    // With --join, a ban by REST, or another wait that is too long, does not end the run.
    if (!canUseArchive(error, context.options.join !== undefined)) throw error;
    const archived = await archivedSymbols(context, market);
    // Without any list of symbols, the names cannot be checked.
    if (archived.size === 0)
      throw new CryptodlError('unreachable', `REST cannot be reached: ${error.message}`, {
        cause: error,
        hint: error.hint ?? 'check the network and the flags for the addresses of REST',
      });
    const hint = error.hint === undefined ? '' : `; ${error.hint}`;
    context.observer.warn(`${error.message}: the archive's symbols are taken instead${hint}`);
    return new Set([...archived, ...names]);
  }
}

function canUseArchive(error: unknown, afterLongWait = false): error is CryptodlError {
  if (!(error instanceof CryptodlError)) return false;
  return error.code === 'wait-too-long' ? afterLongWait : !error.fatal;
}

/** Symbols of the datasets that both the archive and REST have; none without a listing. */
async function archivedSymbols(context: SymbolContext, market: Market): Promise<ReadonlySet<string>> {
  const datasets = datasetsOf(context.exchange, market)
    .filter((spec) => isArchived(spec) && isMetric(spec))
    .map((spec) => ({ market, spec, cadences: spec.cadences }));
  try {
    const listed = await listedSymbols(context, datasets);
    return new Set([...listed.values()].flatMap((symbols) => [...symbols]));
  } catch (error) {
    if (!canUseArchive(error)) throw error;
    return new Set();
  }
}
