/** Chooses the series and the column of a plot from the operand, the flags, and the series of the lake. */
import { listText } from '../../model/units.js';
import { usage } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import type { Resolved } from '../../plan/options/resolve.js';
import { filterHeldSeries, nothingHeld } from '../../plan/select/held-series.js';
import type { Exchange } from '../../exchange/exchange.js';
import { findDataset, isMade, marketNames } from '../../exchange/exchange-spec.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import type { ColumnSpec } from '../../exchange/facts.js';
import { didYouMean } from '../../text/did-you-mean.js';

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
  exchange: Exchange,
): ChosenDataset {
  const { options } = resolved;
  if (held.length === 0) throw nothingHeld(options.out);
  const symbols = [...new Set(held.map((series) => series.symbol))].sort();
  const isFlagged = operand === undefined || resolved.origins.symbols === 'flag';
  const flagged = isFlagged ? (resolved.texts.symbols ?? []) : [];
  const given = [...new Set(operand === undefined ? flagged : [operand, ...flagged])];
  const symbol = chooseSymbol(symbols, given.length === 0 ? undefined : given.join(','), options.out);
  const own = held.filter((series) => series.symbol === symbol);
  const where = {
    ...resolved,
    options: { ...options, symbols: undefined, quote: undefined, out: `${symbol} in ${options.out}` },
  };
  const allowed = filterHeldSeries(own, where, undefined, () => undefined);
  const ranked = rankedDatasets(allowed, exchange);
  const [chosen] = ranked.flatMap((first) => {
    const spec = findDataset(exchange, first.market, first.dataset);
    const columns = spec && chartColumns(spec, options.column);
    return spec === undefined || columns === undefined ? [] : [{ name: datasetName(first), spec, columns }];
  });
  if (chosen === undefined) throw noColumn(options.column, ranked[0], exchange);
  const { name, ...dataset } = chosen;
  const isChosen = (series: Series): boolean => datasetName(series) === name;
  return {
    ...dataset,
    series: allowed.filter(isChosen),
    others: allowed.filter((series) => !isChosen(series)),
  };
}

/** `given`: the argument, or the value of --symbols. The case of letters may differ if only one symbol has them. */
function chooseSymbol(symbols: readonly string[], given: string | undefined, out: string): string {
  const [only = ''] = symbols;
  const named = listText(symbols, 12);
  if (given === undefined) {
    if (symbols.length === 1) return only;
    throw usage(`plot needs a symbol; ${out} holds ${named}`, 'cryptodl plot SYMBOL');
  }
  const sameLetters = symbols.filter((symbol) => symbol.toLowerCase() === given.toLowerCase());
  const [found, other] = symbols.includes(given) ? [given] : sameLetters;
  if (found !== undefined && other === undefined) return found;
  throw usage(
    `${out} holds no ${given}; it holds ${named}`,
    didYouMean(given, symbols) ?? 'plot draws one of these symbols',
  );
}

/** The usage error for series without the column, or without any numbers. `best`: a series of the best dataset of them. */
function noColumn(column: string | undefined, best: Series | undefined, exchange: Exchange): Error {
  const spec = best && findDataset(exchange, best.market, best.dataset);
  const names = spec?.columns.filter(isNumeric).map(({ name }) => name) ?? [];
  const has = names.length === 0 ? 'no column of numbers that this version knows' : names.join(', ');
  return usage(
    `${column === undefined ? 'plot' : `--column ${column}`}: no such column of numbers; ${best === undefined ? '' : datasetName(best)} has ${has}`,
    column === undefined ? undefined : didYouMean(column, names),
  );
}

/** `um klines` */
function datasetName({ market, dataset }: Series): string {
  return `${market} ${dataset}`;
}

function isNumeric({ type }: ColumnSpec): boolean {
  return type === 'number' || type === 'integer';
}

/** A series of each market and dataset: candles of trades first, then other candles, then the default market first. */
function rankedDatasets(series: readonly Series[], exchange: Exchange): Series[] {
  const markets = [exchange.defaultMarket, ...marketNames(exchange)];
  const rankOf = ({ market, dataset }: Series): number => {
    const spec = findDataset(exchange, market, dataset);
    const kind = dataset === 'klines' ? 0 : spec === undefined ? 3 : hasCandles(spec) ? 1 : 2;
    return kind * 100 + markets.indexOf(market);
  };
  const firsts = new Map(series.map((one) => [datasetName(one), one]));
  return [...firsts.values()].sort((a, b) => rankOf(a) - rankOf(b));
}

/** The rows of a dataset with intervals are candles; a summary of options has prices of many contracts at one time. */
function hasCandles(spec: DatasetSpec): boolean {
  const names = new Set(spec.columns.map(({ name }) => name));
  return (
    (spec.intervals !== undefined || isMade(spec)) &&
    ['open', 'high', 'low', 'close'].every((name) => names.has(name))
  );
}

/** Undefined for a dataset without the column of this name, or without any numbers. */
function chartColumns(spec: DatasetSpec, name: string | undefined): ChartColumns | undefined {
  const numbers = spec.columns.filter(isNumeric);
  if (name === undefined && hasCandles(spec))
    return { kind: 'candles', hasVolume: numbers.some((column) => column.name === 'volume') };
  const column =
    name === undefined
      ? (numbers.find((one) => one.name === 'price') ??
        numbers.find((one) => one.type === 'number' && !spec.sort.includes(one.name)))
      : numbers.find((one) => one.name === name);
  return column === undefined ? undefined : { kind: 'line', column };
}
