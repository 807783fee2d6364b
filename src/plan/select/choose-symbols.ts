/** Matches `--symbols` and `--quote` with the symbols of the archive, or of the exchange. */
import { CryptodlError } from '../../model/errors.js';
import { readOrders } from '../../lake/orders.js';
import { MOST_SYMBOL_CHARACTERS, type SymbolPatterns } from '../options/symbols.js';
import { byKey } from '../../exchange/keys.js';
import { datasetsOf, isArchived, isMetric, type DatasetSpec } from '../../exchange/exchange-spec.js';
import { refuseEnded, oneMarket, type ChosenDataset } from './select-datasets.js';
import type { SymbolContext } from './selection.js';
import { meantNames, selectSymbols, namesOnly, type SymbolOwner } from './match-symbols.js';
import { isListingFault } from '../../exchange/listing.js';
import { listText } from '../../model/units.js';
import type { Market } from '../../model/task.js';

export interface ChosenSymbols {
  readonly symbols: readonly string[];
  /** The symbols that the exact names of --symbols mean. */
  readonly names: readonly string[];
  /** Symbols of each selected dataset; undefined if the listing is not available. */
  readonly available: ReadonlyMap<DatasetSpec, ReadonlySet<string>> | undefined;
  /** Given symbols that no selected dataset has, but another dataset of their market. */
  readonly elsewhere: ReadonlySet<string>;
}

/**
 * The selected symbols among those that the archive lists for the datasets; without a listing, the exactly named symbols.
 * Throws usage errors, and for globs without a listing `unreachable` or `wait-too-long`. A name that only another dataset of the
 * market has is selected too, and its objects are absent. It is an error if no other symbol is selected.
 */
export async function chooseSymbols(
  context: SymbolContext,
  patterns: SymbolPatterns,
  datasets: readonly ChosenDataset[],
): Promise<ChosenSymbols> {
  let available: Map<DatasetSpec, ReadonlySet<string>>;
  try {
    available = await listedSymbols(context, datasets);
  } catch (error) {
    if (!isListingFault(error)) throw error;
    refuseRemoved(context, datasets);
    // The symbols that earlier runs of the lake have asked for in these markets.
    const ordered = (await readOrders(context.paths)).orders
      .filter(({ market }) => datasets.some((dataset) => dataset.market === market))
      .flatMap(({ symbols }) => symbols);
    const names = meantNames(patterns.names, [...new Set(ordered)]);
    const symbols = withoutListing(context, { ...patterns, names }, error);
    return { symbols, names, available: undefined, elsewhere: new Set() };
  }
  refuseRemoved(
    context,
    datasets.filter(({ spec }) => available.get(spec)?.size === 0),
  );
  const listed = inKeyOrderOf(available);
  const known = new Set(listed);
  const unknown = meantNames(patterns.names, listed).filter((name) => !known.has(name));
  const elsewhere = await otherOwners(context, datasets, unknown);
  const what = [...new Set(datasets.map(({ market, spec }) => `${market} ${spec.name}`))].join(', ');
  const place = { what, listed, elsewhere, takesElsewhere: true };
  return { ...selectListed(context, patterns, place), available, elsewhere };
}

/** The place of symbols; `takesElsewhere`: the names that only another place has are selected too. */
interface SymbolListing extends Pick<SymbolOwner, 'what' | 'owner'> {
  readonly listed: readonly string[];
  readonly elsewhere: ReadonlySet<string>;
  readonly takesElsewhere: boolean;
}

/** The selected symbols, and the names that --symbols means. A name of `elsewhere` is an error if no other symbol is selected. */
function selectListed(
  { options, observer }: SymbolContext,
  patterns: SymbolPatterns,
  { listed, elsewhere, takesElsewhere, ...owner }: SymbolListing,
): Pick<ChosenSymbols, 'symbols' | 'names'> {
  const all = [...listed, ...elsewhere].sort(byKey);
  const meant = meantNames(patterns.names, all);
  const isNothingLeft = patterns.globs.length === 0 && meant.every((name) => elsewhere.has(name));
  const names = isNothingLeft || takesElsewhere ? meant : meant.filter((name) => !elsewhere.has(name));
  const available = isNothingLeft || !takesElsewhere ? listed : all;
  const symbols = selectSymbols({ ...patterns, names }, options.quote, available, {
    ...owner,
    skipUnknown: !isNothingLeft && options.skipUnknown,
    warn: observer.warn.bind(observer),
  });
  return { symbols, names };
}

/**
 * Looks for the names in the first dataset of each market, because it has nearly all symbols. Resolves with the names that it has.
 * A dataset that is selected already, or whose listing is not available, is left out.
 */
async function otherOwners(
  context: SymbolContext,
  datasets: readonly ChosenDataset[],
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const owners = new Set<string>();
  if (names.length === 0) return owners;
  for (const market of new Set(datasets.map((dataset) => dataset.market))) {
    const spec = datasetsOf(context.exchange, market).find((one) => isArchived(one) && !one.removed);
    if (spec === undefined || datasets.some((dataset) => dataset.spec === spec)) continue;
    try {
      const listed = await listedSymbols(context, [{ market, spec, cadences: spec.cadences.slice(0, 1) }]);
      const symbols = listed.get(spec) ?? new Set();
      for (const name of meantNames(names, [...symbols])) if (symbols.has(name)) owners.add(name);
    } catch (error) {
      if (!isListingFault(error)) throw error;
    }
  }
  return owners;
}

/** Throws the error for the first dataset that the archive no longer has. */
function refuseRemoved(context: SymbolContext, datasets: readonly ChosenDataset[]): void {
  const removed = datasets.find(({ spec }) => spec.removed);
  if (removed !== undefined) refuseEnded(context.exchange, removed);
}

/** The exactly named symbols, with a warning. For globs, throws `unreachable`, or the given error if it is `wait-too-long`. */
function withoutListing(
  context: SymbolContext,
  patterns: SymbolPatterns,
  error: CryptodlError,
): readonly string[] {
  const symbols = namesOnly(patterns, context.options.quote);
  if (symbols === undefined) {
    // The hint of this error says that the same command may succeed later.
    if (error.code === 'wait-too-long') throw error;
    const what = `the listing is not available, so ${patterns.globs.join(', ')} cannot be matched`;
    throw new CryptodlError('unreachable', `${what}: ${error.message}`, {
      cause: error,
      hint: 'check the network and --listing-url, or name the symbols exactly',
    });
  }
  context.observer.warn(
    `the listing is not available (${error.message}): the sidecar of each selected period is requested instead`,
  );
  return symbols;
}

/** The shown part of a symbol that is too long. */
const SHOWN_CHARACTERS = 40;

/** Symbols of each dataset, in all selected cadences, because some symbols have only monthly objects. */
export async function listedSymbols(
  context: Pick<SymbolContext, 'exchange' | 'listing' | 'observer'>,
  datasets: readonly ChosenDataset[],
): Promise<Map<DatasetSpec, ReadonlySet<string>>> {
  const listed = new Map<DatasetSpec, ReadonlySet<string>>();
  const tooLong = new Set<string>();
  for (const { market, spec } of datasets) {
    if (listed.has(spec)) continue;
    const own = datasets.filter((dataset) => dataset.spec === spec);
    const symbols = new Set<string>();
    for (const cadence of new Set(own.flatMap(({ cadences }) => cadences))) {
      const prefix = context.exchange.archive.datasetPrefix(market, cadence, spec.name);
      for await (const symbol of context.listing.folders(prefix))
        (symbol.length > MOST_SYMBOL_CHARACTERS ? tooLong : symbols).add(symbol);
    }
    listed.set(spec, symbols);
  }
  const shown = [...tooLong].map((symbol) => `${symbol.slice(0, SHOWN_CHARACTERS)}…`);
  if (shown.length > 0)
    context.observer.warn(
      `left out of the archive, because the name is too long for a folder: ${listText(shown)}`,
    );
  return listed;
}

export const inKeyOrderOf = (listed: ReadonlyMap<DatasetSpec, ReadonlySet<string>>): string[] =>
  [...new Set([...listed.values()].flatMap((symbols) => [...symbols]))].sort(byKey);

// Chooses the selected symbols among those of REST.

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
