/** The selection of `cryptodl vision`: options → series requests for the archive. */
import { dayOf, dayText, monthOf, monthStart } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { listText } from '../model/units.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { readPatterns } from '../options/symbols.js';
import type { ReadList } from '../options/symbols.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { endOfDataset } from '../source/describe.js';
import { continueLake } from './continue-lake.js';
import { orderTerms } from './continue-orders.js';
import { resolveRange } from './date-range.js';
import type { Range } from './date-range.js';
import { fillOf } from './rest-offer.js';
import { chooseDatasets, endedNotes, isAll } from './select-datasets.js';
import type { ChosenDataset } from './select-datasets.js';
import { chooseSymbols } from './select-symbols.js';
import type { ChosenSymbols } from './select-symbols.js';
import { describeSelection, givenFlags, givenSettings, seriesRequest } from './selection.js';
import type { ParsedOptions, SelectionContext, SymbolContext, RunSelection } from './selection.js';

/** Without --symbols, the series of the lake are continued. Throws usage errors. */
export async function selectSeries(
  context: SymbolContext,
  resolved: Resolved,
  read: ReadList,
): Promise<RunSelection> {
  const { options, venue } = context;
  const { range, datasets } = parseSeriesOptions(context);
  const allowsMissing = canLackSymbols(options);
  if (options.symbols === undefined)
    return {
      verb: 'vision',
      ...(await continueLake(context, range, givenFlags(resolved), 'vision')),
    };
  const patterns = await readPatterns(options.symbols, read);
  const { selection, names, available, elsewhere } = await chooseSymbols(context, patterns, datasets);
  const given = givenSettings(givenFlags(resolved));
  const requests = datasets.flatMap((dataset) => {
    const has = available?.get(dataset.spec);
    const symbols = selection.symbols.filter(
      (symbol) => has === undefined || has.has(symbol) || (names.includes(symbol) && !allowsMissing),
    );
    return symbols.map((symbol) => ({ ...requestOf(context, dataset, symbol, range), given }));
  });
  const ended = datasets.filter(({ spec }) => endOfDataset(spec) !== undefined);
  return {
    verb: 'vision',
    requests,
    order: orderTerms(patterns, options, range),
    hasListing: available !== undefined,
    ...describeSelection(context, datasets),
    range: range.text,
    notes: [
      ...monthlyNotes(context, datasets, range),
      ...lackingNotes(
        (allowsMissing ? [...elsewhere.keys()] : names).filter((name) => selection.symbols.includes(name)),
        datasets,
        available,
      ),
      ...endedNotes(venue, ended, range.to),
    ],
    ended,
  };
}

/** Whether combinations of dataset and symbol that do not exist are left out without a note. */
function canLackSymbols({ market, dataset }: Options): boolean {
  return isAll(market) || isAll(dataset);
}

/** Resolves range and datasets without requests and without the lake. Throws usage errors. */
export function parseSeriesOptions({ options, venue, nowMs }: SelectionContext): ParsedOptions {
  const range = resolveRange(options, nowMs, venue);
  const chosen = chooseDatasets(venue, options);
  // `all` does not include datasets that ended before the range.
  const current = chosen.filter(({ spec }) => (endOfDataset(spec) ?? range.to) > (range.from ?? 0));
  const datasets = canLackSymbols(options) && current.length > 0 ? current : chosen;
  refuseFill(options, datasets);
  return { range, datasets };
}

/** With --fill: throws a usage error if REST has none of the datasets, or for --format zip. */
function refuseFill(options: Options, datasets: readonly ChosenDataset[]): void {
  if (options.fill === undefined) return;
  const what =
    options.format === 'zip'
      ? 'files of the archive'
      : datasets.every(({ spec }) => spec.rest === undefined)
        ? options.dataset.join(',')
        : undefined;
  if (what === undefined) return;
  throw usage(`--fill rest: REST has no ${what}`, 'leave --fill out');
}

export function requestOf(
  context: SymbolContext,
  dataset: ChosenDataset,
  symbol: string,
  range: Range,
): SeriesRequest {
  const request = seriesRequest(context, dataset, symbol, range);
  return { ...request, ...fillOf(context, request.series) };
}

/** A line for each dataset that lacks some of the names; none without a listing. */
function lackingNotes(
  names: readonly string[],
  datasets: readonly ChosenDataset[],
  available: ChosenSymbols['available'],
): string[] {
  const notes = datasets.flatMap(({ market, spec }) => {
    const has = available?.get(spec);
    const lacked = names.filter((name) => has?.has(name) === false);
    return lacked.length === 0 ? [] : [`lacking    ${market} ${spec.name} has no ${listText(lacked, 3)}`];
  });
  return [...new Set(notes)];
}

/** `fundingRate, klines 1w`, each once. */
function namesOf(datasets: readonly ChosenDataset[]): string {
  const names = datasets.map(({ spec, interval = '' }) => `${spec.name} ${interval}`.trimEnd());
  return [...new Set(names)].join(', ');
}

/** The lines for datasets without daily objects: what a range selects, and where its days of the current month are. */
function monthlyNotes(
  { options, venue, nowMs }: SelectionContext,
  datasets: readonly ChosenDataset[],
  range: Range,
): string[] {
  const monthly = datasets.filter(({ cadences }) => !cadences.includes('daily'));
  const monthDay = monthStart(monthOf(dayOf(nowMs, venue)));
  const isOpen = range.to > monthDay && options.fill === undefined && options.format !== 'zip';
  const inRest = monthly.filter(
    ({ spec }) => isOpen && spec.rest !== undefined && !spec.cadences.includes('daily'),
  );
  return [
    ...(monthly.length === 0
      ? []
      : [`monthly    ${namesOf(monthly)}: every month that the range touches, as a whole`]),
    ...(inRest.length === 0
      ? []
      : [
          `monthly    ${namesOf(inRest)}: published by month, days or more after its end; REST has the days since ${dayText(monthDay)}: add --fill rest`,
        ]),
  ];
}
