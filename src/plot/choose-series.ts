/** Chooses the series and the column of a plot from the operand, the flags, and the series of the lake. */
import { listText } from '../model/units.js';
import { usage } from '../model/errors.js';
import type { Series } from '../model/task.js';
import type { Resolved } from '../options/resolve.js';
import { filterHeldSeries, nothingHeld } from '../select/held-series.js';
import { ALL } from '../source/names.js';
import type { Source } from '../source/source.js';
import { findDataset, isMade, marketNames } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { ColumnSpec } from '../source/facts.js';
import { didYouMean, nearest } from '../text/did-you-mean.js';

/** The columns that a chart reads. */
export type ChartColumns =
  | { readonly kind: 'candles'; readonly hasVolume: boolean }
  | { readonly kind: 'line'; readonly column: ColumnSpec };

/** A market and a dataset of the symbol. */
export interface ChosenDataset {
  /** Series that differ only in their interval. */
  readonly series: readonly Series[];
  readonly spec: DatasetSpec;
  readonly columns: ChartColumns;
  /** Other series of the symbol that the flags allow. */
  readonly others: readonly Series[];
}

/** Throws usage errors for names that the lake does not have. `held`: all series of the lake. */
export function chooseDataset(
  held: readonly Series[],
  operand: string | undefined,
  resolved: Resolved,
  venue: Source,
): ChosenDataset {
  const { options } = resolved;
  if (held.length === 0) throw nothingHeld(options.out);
  const symbols = [...new Set(held.map((series) => series.symbol))].sort();
  const flagged = resolved.texts.symbols;
  if (operand !== undefined && resolved.origins.symbols === 'flag' && flagged?.join(',') !== operand)
    throw usage(
      `plot draws one symbol, not "${[operand, ...(flagged ?? [])].join(',')}"`,
      'leave --symbols out',
    );
  const symbol = chooseSymbol(symbols, operand ?? flagged?.join(','), options.out);
  const own = held.filter((series) => series.symbol === symbol);
  for (const name of ['market', 'dataset', 'interval'] as const) refuseSeveral(name, resolved);
  const where = {
    ...resolved,
    options: { ...options, symbols: undefined, quote: undefined, out: `${symbol} in ${options.out}` },
  };
  const allowed = filterHeldSeries(own, where, undefined, () => undefined);
  const withColumn = columnFilter(allowed, options.column, venue);
  const ranked = rankedDatasets(withColumn, venue);
  const [first] = ranked;
  const spec = first === undefined ? undefined : findDataset(venue, first.market, first.dataset);
  if (first === undefined || spec === undefined)
    throw usage(`this version does not know the dataset ${first?.dataset ?? ''} and cannot plot it`);
  const isFirst = ({ market, dataset }: Series): boolean =>
    market === first.market && dataset === first.dataset;
  return {
    series: withColumn.filter(isFirst),
    spec,
    columns: chartColumns(spec, options.column),
    others: allowed.filter((series) => !isFirst(series)),
  };
}

/** `given`: the argument, or the value of --symbols. */
function chooseSymbol(symbols: readonly string[], given: string | undefined, out: string): string {
  const [only = ''] = symbols;
  const named = listText(symbols, 12);
  if (given === undefined) {
    if (symbols.length === 1) return only;
    throw usage(`plot needs a symbol; ${out} holds ${named}`, `cryptodl plot ${preferred(symbols)}`);
  }
  const sameLetters = symbols.filter((symbol) => symbol.toLowerCase() === given.toLowerCase());
  const found =
    symbols.find((symbol) => symbol === given) ?? (sameLetters.length === 1 ? sameLetters[0] : undefined);
  if (found !== undefined) return found;
  if (/[,*?]/.test(given)) {
    const first = given.split(',').find((part) => symbols.includes(part));
    throw usage(
      `plot draws one symbol, not "${given}"; ${out} holds ${named}`,
      `cryptodl plot ${first ?? preferred(symbols)}`,
    );
  }
  const near = nearest(given, symbols) ?? symbols.find((symbol) => symbol.startsWith(given.toUpperCase()));
  throw usage(
    `${out} holds no ${given}; it holds ${named}`,
    near === undefined ? undefined : `did you mean ${near}?`,
  );
}

function preferred(symbols: readonly string[]): string {
  return symbols.find((symbol) => symbol.startsWith('BTC')) ?? symbols[0] ?? '';
}

function refuseSeveral(name: 'market' | 'dataset' | 'interval', { options, origins }: Resolved): void {
  const [first, second] = options[name];
  if (origins[name] === 'default' || second === undefined) return;
  throw usage(
    `plot draws one series, and --${name} has ${options[name].join(', ')}`,
    `--${name} ${first === ALL ? (second ?? '') : (first ?? '')}`,
  );
}

/** The series with this column. Throws a usage error if none has it, or if it has no numbers. */
function columnFilter(
  series: readonly Series[],
  column: string | undefined,
  venue: Source,
): readonly Series[] {
  if (column === undefined) return series;
  const columnsOf = ({ market, dataset }: Series): readonly ColumnSpec[] =>
    findDataset(venue, market, dataset)?.columns.filter(isNumeric) ?? [];
  const found = series.filter((one) => columnsOf(one).some(({ name }) => name === column));
  if (found.length > 0) return found;
  const ranked = rankedDatasets(series, venue);
  const names = ranked.flatMap(columnsOf).map(({ name }) => name);
  const first = ranked.slice(0, 1).map(
    (one) =>
      `; ${datasetName(one)} has ${columnsOf(one)
        .map(({ name }) => name)
        .join(', ')}`,
  );
  throw usage(
    `--column ${column}: ${ranked.map(datasetName).join(', ')} has no such column of numbers${first.join('')}`,
    didYouMean(column, names),
  );
}

/** `um klines` */
function datasetName({ market, dataset }: Series): string {
  return `${market} ${dataset}`;
}

function isNumeric({ type }: ColumnSpec): boolean {
  return type === 'number' || type === 'integer';
}

/** One series for each market and dataset: candles of trades first, then other candles, then the default market first. */
function rankedDatasets(series: readonly Series[], venue: Source): Series[] {
  const markets = [venue.defaultMarket, ...marketNames(venue)];
  const rank = ({ market, dataset }: Series): number => {
    const spec = findDataset(venue, market, dataset);
    const kind = dataset === 'klines' ? 0 : spec === undefined ? 3 : hasCandles(spec) ? 1 : 2;
    return kind * 100 + markets.indexOf(market);
  };
  const firsts = new Map(series.map((one) => [datasetName(one), one]));
  return [...firsts.values()].sort((a, b) => rank(a) - rank(b));
}

/** The rows of a dataset with intervals are candles; a summary of options has prices of many contracts at one time. */
function hasCandles(spec: DatasetSpec): boolean {
  const names = new Set(spec.columns.map(({ name }) => name));
  return (
    (spec.intervals !== undefined || isMade(spec)) &&
    ['open', 'high', 'low', 'close'].every((name) => names.has(name))
  );
}

function chartColumns(spec: DatasetSpec, name: string | undefined): ChartColumns {
  const numbers = spec.columns.filter(isNumeric);
  if (name === undefined && hasCandles(spec))
    return { kind: 'candles', hasVolume: numbers.some((column) => column.name === 'volume') };
  const column =
    name === undefined
      ? (numbers.find((one) => one.name === 'price') ??
        numbers.find((one) => one.type === 'number' && !spec.sort.includes(one.name)))
      : numbers.find((one) => one.name === name);
  if (column === undefined) throw usage(`${spec.name} has no column of numbers`);
  return { kind: 'line', column };
}
