/** The selection of `cryptodl metrics`: options → series requests for REST. */
import { listText } from '../model/units.js';
import { dayOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Market } from '../model/task.js';
import type { Resolved } from '../options/resolve.js';
import { readPatterns } from '../options/symbols.js';
import type { ReadList } from '../options/symbols.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { resolveRange } from './date-range.js';
import type { Range } from './date-range.js';
import { takesSymbol } from '../source/routes.js';
import { chooseDatasets, oneMarket } from './select-datasets.js';
import type { ChosenDataset } from './select-datasets.js';
import { chooseRestSymbols } from './select-symbols.js';
import type { RestSymbols } from './select-symbols.js';
import { continueLake } from './continue-lake.js';
import { orderTerms } from './continue-orders.js';
import { offerOf, retentionNotes } from './rest-offer.js';
import { describeSelection, givenFlags, givenSettings, seriesRequest } from './selection.js';
import type { ParsedOptions, SelectionContext, SymbolContext, RunSelection } from './selection.js';

/** Without --symbols, the REST series of the lake are continued. Throws usage errors. */
export async function selectMetrics(
  context: SymbolContext,
  resolved: Resolved,
  read: ReadList,
): Promise<RunSelection> {
  const { options } = context;
  const { range, datasets } = parseMetricsOptions(context);
  const hasListing = options.join !== undefined;
  if (options.symbols === undefined) {
    const continued = await continueLake(context, range, givenFlags(resolved), 'metrics');
    const notes = [...continued.notes, ...retentionNotes(context, continued.requests)];
    return { verb: 'metrics', ...continued, notes, hasListing };
  }
  const patterns = await readPatterns(options.symbols, read);
  const chosen = await chooseRestSymbols(context, patterns);
  // In the order of symbols, so that datasets with different rate limits are requested at the same time.
  const given = givenSettings(givenFlags(resolved));
  const requests = chosen.symbols.flatMap((symbol) =>
    datasets.flatMap((dataset) =>
      requestOf(context, dataset, symbol, range).map((request) => ({ ...request, given })),
    ),
  );
  if (requests.length === 0)
    throw usage(
      `--symbols: REST has no selected dataset of ${listText(chosen.symbols)}`,
      'it may have them of perpetual contracts',
    );
  return {
    verb: 'metrics',
    requests,
    order: orderTerms(patterns, options, range),
    hasListing,
    ...describeSelection(context, datasets),
    range: range.text,
    notes: [
      ...delistedNotes(chosen, oneMarket(context.venue, options, 'metrics')),
      ...datedNotes(context, chosen.symbols, datasets),
      ...retentionNotes(context, requests),
    ],
    ended: [],
  };
}

/** Resolves range and datasets without requests and without the lake. Throws usage errors. */
export function parseMetricsOptions(context: SelectionContext): ParsedOptions {
  const { options, venue, nowMs } = context;
  oneMarket(venue, options, 'metrics');
  if (options.format === 'zip')
    throw usage('--format: zip is for files of the archive, REST has none', '--format parquet');
  const range = withToday(context, resolveRange(options, nowMs, venue));
  return { range, datasets: chooseDatasets(venue, options, 'rest') };
}

/** With --include-today, a range that ends yesterday is extended to today. */
function withToday({ options, venue, nowMs }: SelectionContext, range: Range): Range {
  const today = dayOf(nowMs, venue);
  if (!options.includeToday || range.to !== today) return range;
  return { ...range, to: today + 1, text: `${range.text} and today` };
}

export function requestOf(
  context: SymbolContext,
  dataset: ChosenDataset,
  symbol: string,
  range: Range,
): SeriesRequest[] {
  const request = seriesRequest(context, dataset, symbol, range);
  const rest = offerOf(context, request.series);
  return rest === undefined ? [] : [{ ...request, rest }];
}

function delistedNotes({ delisted }: RestSymbols, market: Market): string[] {
  if (delisted.length === 0) return [];
  return [
    `delisted   ${listText(delisted, 3)}: not traded any more; the archive has the history: cryptodl vision --market ${market} --dataset metrics,fundingRate`,
  ];
}

function datedNotes(
  { venue }: SelectionContext,
  symbols: readonly string[],
  datasets: readonly ChosenDataset[],
): string[] {
  return datasets.flatMap(({ market, spec }) => {
    const dated = symbols.filter((symbol) => !takesSymbol(venue, spec, market, symbol));
    if (dated.length === 0) return [];
    return [`lacking    ${market} ${spec.name} has no ${listText(dated, 3)}: only perpetual contracts`];
  });
}
