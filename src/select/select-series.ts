/** The selection of `cryptodl vision`: options → series requests for the archive. */
import { dayText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { readPatterns } from '../options/symbols.js';
import type { ReadList } from '../options/symbols.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { endOfDataset } from '../source/describe.js';
import { continueLake } from './continue-lake.js';
import { resolveRange } from './date-range.js';
import type { Range } from './date-range.js';
import { fillOf } from './rest-offer.js';
import { chooseDatasets, datasetName, endedNotes, isAll } from './select-datasets.js';
import type { ChosenDataset } from './select-datasets.js';
import { chooseSymbols } from './select-symbols.js';
import type { ChosenSymbols } from './select-symbols.js';
import { describeSelection, excludedNotes, givenFlags, givenSettings, seriesRequest } from './selection.js';
import type { ParsedOptions, SelectionContext, SymbolContext, RunSelection } from './selection.js';
import type { MatchedSymbols } from './symbol-patterns.js';

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
    hasListing: available !== undefined,
    ...describeSelection(context, datasets),
    range: range.text,
    notes: [
      ...notesOf(selection, datasets, range),
      ...lackingNotes(allowsMissing ? [...elsewhere.keys()] : names, datasets, {
        available,
        elsewhere,
      }),
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

/** Notes for given symbols that some of the datasets lack, with the datasets that have them. */
function lackingNotes(
  names: readonly string[],
  datasets: readonly ChosenDataset[],
  { available, elsewhere }: Pick<ChosenSymbols, 'available' | 'elsewhere'>,
): string[] {
  const ownersOf = (name: string): Set<string> => {
    const owners = datasets.filter(({ spec }) => available?.get(spec)?.has(name) === true);
    const other = elsewhere.get(name);
    return new Set([
      ...owners.map(({ market, spec }) => datasetName({ market, spec })),
      ...(other === undefined ? [] : [other]),
    ]);
  };
  const lacking = datasets.flatMap(({ market, spec }) => {
    const has = available?.get(spec);
    return names.flatMap((name) => {
      const owners = ownersOf(name);
      if (has === undefined || has.has(name) || owners.size === 0) return [];
      return `lacking    ${market} ${spec.name} has no ${name}; ${[...owners].join(', ')} has it`;
    });
  });
  const all = [...new Set(lacking)];
  return all.length > MOST_NOTES
    ? [...all.slice(0, MOST_NOTES), `           … and ${all.length - MOST_NOTES} more`]
    : all;
}

const MOST_NOTES = 5;

function notesOf(selection: MatchedSymbols, datasets: readonly ChosenDataset[], range: Range): string[] {
  const notes = excludedNotes(selection.excluded);
  const monthly = datasets.filter((dataset) => !dataset.cadences.includes('daily'));
  const names = [
    ...new Set(
      monthly.map(({ spec, interval }) =>
        [spec.name, interval].filter((part) => part !== undefined).join(' '),
      ),
    ),
  ];
  if (names.length > 0) {
    const first = range.from === undefined ? 'the start' : dayText(range.from).slice(0, 7);
    notes.push(
      `monthly    ${names.join(', ')}: every month that the range touches (${first} … ${dayText(range.to - 1).slice(0, 7)})`,
    );
  }
  return notes;
}
