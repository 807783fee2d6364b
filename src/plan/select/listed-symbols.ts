/** The symbols that the archive lists for datasets. */
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { byKey } from '../../exchange/keys.js';
import { listText } from '../../model/units.js';
import { MOST_SYMBOL_CHARACTERS } from '../options/symbols.js';
import type { ChosenDataset } from './select-datasets.js';
import type { SymbolContext } from './selection.js';

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
