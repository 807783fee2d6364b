/** `--symbols` and `--quote` against what the archive has. */
import { CryptodlError } from '../errors.js';
import { isListingFault } from '../plan/listing.js';
import { MOST_SYMBOL_CHARACTERS, namesOnly, selectSymbols } from '../plan/symbols.js';
import type { Selection, SymbolPatterns } from '../plan/symbols.js';
import { byKey, datasetPrefix } from '../venue/keys.js';
import type { DatasetSpec } from '../venue/venue.js';
import { refuseEnded } from './refuse-ended.js';
import { datasetName } from './choose-datasets.js';
import type { ChosenDataset } from './choose-datasets.js';
import type { Session } from './session.js';

/** Of a symbol too long to be one, in a warning. */
const SHOWN_CHARACTERS = 40;

export interface ChosenSymbols {
  readonly selection: Selection;
  /** Symbols of each dataset; undefined when the listing cannot be had. */
  readonly available: ReadonlyMap<DatasetSpec, ReadonlySet<string>> | undefined;
}

/** Symbols that the archive has below the datasets' prefixes. Throws usage errors, and `unreachable` for globs without a listing. */
export async function chooseSymbols(
  session: Session,
  patterns: SymbolPatterns,
  datasets: readonly ChosenDataset[],
): Promise<ChosenSymbols> {
  const quotes = session.options.quote ?? [];
  let available: Map<DatasetSpec, ReadonlySet<string>>;
  try {
    available = await listedSymbols(session, datasets);
  } catch (error) {
    if (!isListingFault(error)) throw error;
    refuseRemoved(session, datasets);
    return { selection: withoutListing(session, patterns, quotes, error), available: undefined };
  }
  for (const dataset of datasets) {
    if (available.get(dataset.spec)?.size === 0) refuseRemoved(session, [dataset]);
  }
  const what = [
    ...new Set(datasets.map((dataset) => datasetName({ market: dataset.market, spec: dataset.spec }))),
  ];
  return { selection: selectSymbols(patterns, quotes, inKeyOrderOf(available), what.join(', ')), available };
}

function refuseRemoved(session: Session, datasets: readonly ChosenDataset[]): void {
  const removed = datasets.find(({ spec }) => spec.removed);
  if (removed !== undefined) refuseEnded(session.venue, removed);
}

function withoutListing(
  session: Session,
  patterns: SymbolPatterns,
  quotes: readonly string[],
  error: CryptodlError,
): Selection {
  const selection = namesOnly(patterns, quotes);
  if (selection === undefined) {
    // The host is there, and has said when it may be asked again.
    if (error.code === 'wait-too-long') throw error;
    throw new CryptodlError(
      'unreachable',
      `the listing cannot be had, so ${patterns.globs.join(', ')} cannot be matched: ${error.message}`,
      {
        cause: error,
        hint: 'check the network and --listing-url, or name the symbols exactly',
      },
    );
  }
  session.observer.warn(
    `the listing cannot be had (${error.message}): sidecars are probed by calendar instead`,
  );
  return selection;
}

/** By market and dataset; of every cadence that one of its intervals has, because some symbols have months only. */
export async function listedSymbols(
  session: Pick<Session, 'venue' | 'listing' | 'observer'>,
  datasets: readonly ChosenDataset[],
): Promise<Map<DatasetSpec, ReadonlySet<string>>> {
  const listed = new Map<DatasetSpec, ReadonlySet<string>>();
  const tooLong = new Set<string>();
  for (const { market, spec } of datasets) {
    if (listed.has(spec)) continue;
    const cadences = datasets
      .filter((dataset) => dataset.spec === spec)
      .flatMap((dataset) => dataset.cadences);
    const symbols = new Set<string>();
    for (const cadence of new Set(cadences)) {
      const prefix = datasetPrefix(session.venue, market, cadence, spec.name);
      for await (const symbol of session.listing.folders(prefix))
        (symbol.length > MOST_SYMBOL_CHARACTERS ? tooLong : symbols).add(symbol);
    }
    listed.set(spec, symbols);
  }
  const [first] = tooLong;
  if (first !== undefined) {
    const more = tooLong.size > 1 ? ` (and ${tooLong.size - 1} more of over ${MOST_SYMBOL_CHARACTERS})` : '';
    session.observer.warn(
      `the archive lists a symbol of ${first.length} characters, which is left out: ${first.slice(0, SHOWN_CHARACTERS)}…${more}`,
    );
  }
  return listed;
}

/** All of them, in key order. */
export function inKeyOrderOf(listed: ReadonlyMap<DatasetSpec, ReadonlySet<string>>): string[] {
  return [...new Set([...listed.values()].flatMap((symbols) => [...symbols]))].sort(byKey);
}
