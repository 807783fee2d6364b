/** `--symbols` of `cryptodl metrics` against what the exchange trades now; what it trades no more is told apart. */
import { CryptodlError, usage } from '../errors.js';
import { selectSymbols } from '../plan/symbols.js';
import type { SymbolPatterns } from '../plan/symbols.js';
import type { Market } from '../task.js';
import { byKey } from '../venue/keys.js';
import { findDataset, isArchived } from '../venue/venue.js';
import { oneMarket } from './choose-datasets.js';
import { listedSymbols } from './choose-symbols.js';
import { mayDoWithout } from './rest-session.js';
import type { Session } from './session.js';

export interface RestSymbols {
  readonly symbols: readonly string[];
  readonly excluded: readonly string[];
  /** `FOOUSDT (SETTLING)`: chosen ones that are not traded at the moment. */
  readonly resting: readonly string[];
  /** Named symbols that only the archive knows. */
  readonly delisted: readonly string[];
}

/** Throws usage errors for names that neither the exchange nor the archive knows, with the nearest one. */
export async function chooseRestSymbols(session: Session, patterns: SymbolPatterns): Promise<RestSymbols> {
  const market = oneMarket(session.options, 'metrics');
  const traded = await tradedSymbols(session, market);
  const unknown = patterns.names.filter((name) => !traded.has(name));
  const archived = unknown.length === 0 ? new Set<string>() : await archivedSymbols(session, market);
  const delisted = unknown.filter((name) => archived.has(name));
  const names = patterns.names.filter((name) => !delisted.includes(name));
  if (names.length === 0 && patterns.globs.length === 0) throw allDelisted(delisted, market);
  const { symbols, excluded } = selectSymbols(
    { ...patterns, names },
    session.options.quote ?? [],
    [...traded.keys()].sort(byKey),
    market,
    'REST',
  );
  const resting = symbols.flatMap((symbol) => {
    const status = traded.get(symbol) ?? TRADING;
    return status === TRADING ? [] : [`${symbol} (${status})`];
  });
  return { symbols, excluded, resting, delisted };
}

function allDelisted(delisted: readonly string[], market: Market): Error {
  const few = delisted.slice(0, 5);
  return usage(
    `${few.join(', ')}: not traded any more, so REST has nothing of ${few.length === 1 ? 'it' : 'them'}`,
    'the archive has the history: cryptodl vision --dataset metrics,fundingRate',
    {
      command: [
        'vision',
        '--market',
        market,
        '--dataset',
        'metrics,fundingRate',
        '--symbols',
        few.join(','),
        '--months',
        '1',
      ],
    },
  );
}

const TRADING = 'TRADING';

/** With their status. Where the host does not answer us, what the archive lists must do. */
async function tradedSymbols(session: Session, market: Market): Promise<ReadonlyMap<string, string>> {
  try {
    const symbols = await session.rest.symbols(market);
    return new Map(symbols.map(({ symbol, status }) => [symbol, status]));
  } catch (error) {
    if (!mayDoWithout(error) && !isBannedBesideArchive(session, error)) throw error;
    const archived = await archivedSymbols(session, market);
    // Nobody knows any symbol: that is no mistake in the names.
    if (archived.size === 0) throw error;
    const hint = error.hint === undefined ? '' : `; ${error.hint}`;
    session.observer.warn(`${error.message}: the archive's symbols are taken instead${hint}`);
    return new Map([...archived].map((symbol) => [symbol, TRADING]));
  }
}

/** What the archive has can be taken before REST may be asked again. */
function isBannedBesideArchive({ options }: Session, error: unknown): error is CryptodlError {
  return options.join !== undefined && error instanceof CryptodlError && error.code === 'wait-too-long';
}

/** Of the datasets that the archive and REST both have; without a listing there are none. */
async function archivedSymbols(session: Session, market: Market): Promise<ReadonlySet<string>> {
  const datasets = ['metrics', 'fundingRate'].flatMap((name) => {
    const spec = findDataset(session.venue, market, name);
    return spec === undefined || !isArchived(spec) ? [] : [{ market, spec, cadences: spec.cadences }];
  });
  try {
    const listed = await listedSymbols(session, datasets);
    return new Set([...listed.values()].flatMap((symbols) => [...symbols]));
  } catch (error) {
    if (!mayDoWithout(error)) throw error;
    return new Set();
  }
}
