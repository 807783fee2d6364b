/** The selection of `cryptodl vision` and `cryptodl metrics`: options → series requests for the archive or REST. */
import { dayOf } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import { listText } from '../../model/units.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import type { SymbolPatterns } from '../options/symbols.js';
import type { SelectedSeries } from '../series-request.js';
import { endOfDataset } from '../../exchange/describe.js';
import { takesSymbol } from '../../exchange/routes.js';
import { continueLake } from './continue-lake.js';
import { orderTerms } from './continue-orders.js';
import { resolveRange, type Range } from './date-range.js';
import { offerOf, retentionNotes } from './rest-offer.js';
import { chooseDatasets, endedNotes, isAll, oneMarket, type ChosenDataset } from './select-datasets.js';
import { chooseSymbols } from './choose-symbols.js';
import { chooseRestSymbols } from './choose-symbols.js';
import { describeDatasets, givenFlags, givenSettings, settingsOf } from './selection.js';
import type {
  DownloadVerb,
  ParsedOptions,
  RunSelection,
  SelectionContext,
  SymbolContext,
} from './selection.js';

/** Without --symbols, the series of the lake are continued. Throws usage errors. */
export async function selectSeries(
  context: SymbolContext,
  resolved: Resolved<never>,
  verb: DownloadVerb,
): Promise<RunSelection> {
  const { options } = context;
  const parsed = parseDownload(context, verb);
  const { range, datasets } = parsed;
  if (options.symbols === undefined) {
    const continued = await continueLake(context, range, givenFlags(resolved), verb);
    const notes = [...continued.notes, ...retentionNotes(context, continued.requests)];
    return { verb, ...continued, notes, hasListing: verb === 'vision' || options.join !== undefined };
  }
  const patterns = await options.symbols.patterns();
  const select = verb === 'vision' ? selectArchived : selectTraded;
  const selected = await select({ ...context, verb }, patterns, parsed);
  const given = givenSettings(givenFlags(resolved));
  return {
    verb,
    order: orderTerms(patterns, options, range),
    what: describeDatasets(datasets),
    range: range.text,
    ...selected,
    requests: selected.requests.map((request) => ({ ...request, given })),
  };
}

interface DownloadContext extends SymbolContext {
  readonly verb: DownloadVerb;
}

type Selected = Pick<RunSelection, 'requests' | 'hasListing' | 'notes'>;

async function selectArchived(
  context: DownloadContext,
  patterns: SymbolPatterns,
  { range, datasets }: ParsedOptions,
): Promise<Selected> {
  const allowsMissing = canLackSymbols(context.options);
  const { symbols, names, available, elsewhere } = await chooseSymbols(context, patterns, datasets);
  const requests = datasets.flatMap((dataset) => {
    const has = available?.get(dataset.spec);
    return symbols
      .filter((symbol) => has === undefined || has.has(symbol) || (names.includes(symbol) && !allowsMissing))
      .flatMap((symbol) => requestsOf(context, dataset, symbol, range));
  });
  const selected = (allowsMissing ? [...elsewhere] : names).filter((name) => symbols.includes(name));
  const notes = [
    ...monthlyNotes(datasets),
    ...lackingNotes(datasets, ({ spec }) =>
      selected.filter((name) => available?.get(spec)?.has(name) === false),
    ),
    ...endedNotes(context.exchange, datasets, range.to),
  ];
  return { requests, hasListing: available !== undefined, notes };
}

async function selectTraded(
  context: DownloadContext,
  patterns: SymbolPatterns,
  { range, datasets }: ParsedOptions,
): Promise<Selected> {
  const { symbols, delisted } = await chooseRestSymbols(context, patterns);
  // In the order of symbols, so that datasets with different rate limits are requested at the same time.
  const requests = symbols
    .flatMap((symbol) => datasets.flatMap((dataset) => requestsOf(context, dataset, symbol, range)))
    .flatMap((request) => {
      if (!delisted.includes(request.series.symbol)) return request;
      return request.rest?.mode === 'only' ? [] : { ...request, rest: undefined };
    });
  if (requests.length === 0)
    throw usage(
      `--symbols: REST has no selected dataset of ${listText(symbols)}`,
      'it may have them of perpetual contracts',
    );
  const notes = [
    ...(delisted.length === 0 || context.options.join !== undefined
      ? []
      : [
          `delisted   ${listText(delisted, 3)}: not traded any more; the archive has the history: cryptodl vision --market ${oneMarket(context.exchange, context.options, 'metrics')} --dataset metrics,fundingRate`,
        ]),
    ...lackingNotes(
      datasets,
      ({ market, spec }) => symbols.filter((symbol) => !takesSymbol(context.exchange, spec, market, symbol)),
      ': only perpetual contracts',
    ),
    ...retentionNotes(context, requests),
  ];
  return { requests, hasListing: context.options.join !== undefined, notes };
}

/** Whether combinations of dataset and symbol that do not exist are left out without a note. */
const canLackSymbols = ({ market, dataset }: Options<'market' | 'dataset'>): boolean =>
  isAll(market) || isAll(dataset);

/** Resolves range and datasets without requests and without the lake. Throws usage errors. */
export function parseDownload(context: SelectionContext, verb: DownloadVerb): ParsedOptions {
  const { options, exchange, nowMs } = context;
  if (verb === 'metrics') {
    oneMarket(exchange, options, verb);
    if (options.format === 'zip')
      throw usage('--format: zip is for files of the archive, REST has none', '--format parquet');
    const range = resolveRange(options, nowMs, exchange);
    const datasets = chooseDatasets(exchange, options, 'rest');
    // A range that ends yesterday is extended to today.
    if (!options.includeToday || range.to !== dayOf(nowMs, exchange)) return { range, datasets };
    return { range: { ...range, to: range.to + 1, text: `${range.text} and today` }, datasets };
  }
  const range = resolveRange(options, nowMs, exchange);
  const chosen = chooseDatasets(exchange, options);
  // `all` does not include datasets that ended before the range.
  const current = chosen.filter(({ spec }) => (endOfDataset(spec) ?? range.to) > (range.from ?? 0));
  const datasets = canLackSymbols(options) && current.length > 0 ? current : chosen;
  refuseFill(options, datasets);
  return { range, datasets };
}

/** With --fill: throws a usage error if REST has none of the datasets, or for --format zip. */
function refuseFill(
  options: Options<'dataset' | 'fill' | 'format'>,
  datasets: readonly ChosenDataset[],
): void {
  if (options.fill === undefined) return;
  const hasNone = datasets.every(({ spec }) => spec.rest === undefined);
  if (options.format !== 'zip' && !hasNone) return;
  const what = options.format === 'zip' ? 'files of the archive' : options.dataset.join(',');
  throw usage(`--fill rest: REST has no ${what}`, 'leave --fill out');
}

/** The request for a symbol of a dataset; none if only REST can serve it and does not. */
export function requestsOf(
  context: DownloadContext,
  { market, spec, interval, cadences }: ChosenDataset,
  symbol: string,
  { from = -Infinity, to }: Range,
): SelectedSeries[] {
  const series = { market, dataset: spec.name, ...(interval === undefined ? {} : { interval }), symbol };
  const rest = offerOf(context, series, context.verb);
  if (context.verb === 'metrics' && rest === undefined) return [];
  return [{ series, settings: settingsOf(context, spec, interval), cadences, ranges: [{ from, to }], rest }];
}

function lackingNotes(
  datasets: readonly ChosenDataset[],
  lackedBy: (dataset: ChosenDataset) => readonly string[],
  why = '',
): string[] {
  const notes = datasets.flatMap((dataset) => {
    const lacked = lackedBy(dataset);
    const name = `${dataset.market} ${dataset.spec.name}`;
    return lacked.length === 0 ? [] : [`lacking    ${name} has no ${listText(lacked, 3)}${why}`];
  });
  return [...new Set(notes)];
}

function monthlyNotes(datasets: readonly ChosenDataset[]): string[] {
  const monthly = datasets.filter(({ cadences }) => !cadences.includes('daily'));
  const names = new Set(monthly.map(({ spec, interval = '' }) => `${spec.name} ${interval}`.trimEnd()));
  if (names.size === 0) return [];
  return [`monthly    ${[...names].join(', ')}: every month that the range touches, as a whole`];
}
