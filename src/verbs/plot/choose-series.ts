/** Chooses the series and the column of a plot from the operand, the flags, and the series of the lake. */
import { listText } from '../../model/units.js';
import { usage } from '../../model/errors.js';
import { didYouMean } from '../../text/did-you-mean.js';
import { layerName, type Series } from '../../model/task.js';
import type { Options } from '../../plan/options/flags.js';
import type { ReadList } from '../../plan/options/parsers.js';
import type { Resolved } from '../../plan/options/resolve.js';
import { symbolsOption } from '../../plan/options/symbols.js';
import type { HeldFlag } from '../../plan/options/verb-request.js';
import { filterHeldSeries, nothingHeld } from '../../plan/select/held-series.js';
import { selectSymbols } from '../../plan/select/match-symbols.js';
import type { Exchange } from '../../exchange/exchange.js';
import { findDataset, isMade, marketNames, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { ColumnSpec } from '../../exchange/facts.js';

export type ChartColumns =
  | { readonly kind: 'candles'; readonly hasVolume: boolean }
  | { readonly kind: 'line'; readonly column: ColumnSpec };

export type PlottedDataset = ReturnType<typeof chooseDataset>;

/** The series of the only symbol of the argument, else of --symbols, else of the lake. Throws usage errors. `held`: all series of the lake. */
export async function seriesOfSymbol(
  held: readonly Series[],
  operand: string | undefined,
  options: Options<'out' | 'symbols'>,
  readList: ReadList,
): Promise<Series[]> {
  if (held.length === 0) throw nothingHeld(options.out);
  const own = operand === undefined ? options.symbols : undefined;
  const patterns = await (own ?? symbolsOption(operand ?? 'all', 'plot', { readList })).patterns();
  const known = [...new Set(held.map(({ symbol }) => symbol))].sort();
  const what = listText(new Set(held.map(layerName)), 3);
  const symbols = selectSymbols(patterns, [], known, { what, owner: options.out });
  if (symbols.length > 1)
    throw usage(`plot needs a symbol; ${options.out} holds ${listText(symbols, 12)}`, 'cryptodl plot SYMBOL');
  return held.filter(({ symbol }) => symbols.includes(symbol));
}

/** `own`: the series of one symbol. Throws usage errors for names that they do not have. */
export function chooseDataset(
  own: readonly Series[],
  resolved: Resolved<HeldFlag | 'column'>,
  exchange: Exchange,
) {
  const { options } = resolved;
  const out = `${own[0]?.symbol ?? ''} in ${options.out}`;
  const where = { ...resolved, options: { ...options, quote: [], out } };
  const allowed = filterHeldSeries(own, where);
  const ranked = rankedDatasets(allowed, exchange);
  const [chosen] = ranked.flatMap((first) => {
    const spec = findDataset(exchange, first.market, first.dataset);
    const columns = spec && chartColumns(spec, options.column);
    return spec === undefined || columns === undefined ? [] : [{ name: datasetName(first), spec, columns }];
  });
  if (chosen === undefined) {
    const [best = { market: '', dataset: '' }] = ranked;
    const spec = findDataset(exchange, best.market, best.dataset);
    const names = spec?.columns.filter(isNumeric).map(({ name }) => name) ?? [];
    throw usage(
      `${options.column === undefined ? 'plot' : `--column ${options.column}`}: no such column of numbers; ${datasetName(best)} has ${names.join(', ') || 'none'}`,
      didYouMean(options.column ?? '', names) ?? 'choose one of these with --column, or another --dataset',
    );
  }
  const { name, spec, columns } = chosen;
  // Series that differ only in their interval.
  return { spec, columns, series: allowed.filter((one) => datasetName(one) === name) };
}

/** `um klines` */
const datasetName = ({ market, dataset }: Pick<Series, 'market' | 'dataset'>): string =>
  `${market} ${dataset}`;

const isNumeric = ({ type }: ColumnSpec): boolean => type === 'number' || type === 'integer';

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
