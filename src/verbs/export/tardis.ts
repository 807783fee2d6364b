/**
 * CSV files in the schema of Tardis, one per type, UTC day and symbol: trades, quotes and derivative_ticker. Read by nautilus_trader and
 * hftbacktest, which take columns by their order.
 */
import { instantExpression } from '../../convert/columns.js';
import { quoteText } from '../../convert/sql.js';
import { grouped } from '../../model/by-name.js';
import { dayText, parseDay } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import { safeName } from '../../lake/safe-names.js';
import type { Series } from '../../model/task.js';
import { isSettled } from '../../exchange/pairs.js';
import { csvForm, exportedDaysOf, onDay, rowOrder } from './export-file.js';
import type { ExportProgram, ExportFile, SeriesRows } from './export-file.js';
import { intervalsOf, type DatasetSpec } from '../../exchange/exchange-spec.js';

const EXCHANGES: Readonly<Record<string, string>> = {
  spot: 'binance',
  um: 'binance-futures',
  cm: 'binance-delivery',
  option: 'binance-options',
};

/** The columns behind the times. In a file of trades, those of the first dataset. */
const EVENTS: Readonly<Record<string, string>> = {
  trades: 'id, side(is_buyer_maker) AS side, num(price) AS price, num(qty) AS amount',
  aggTrades: 'agg_trade_id AS id, side(is_buyer_maker) AS side, num(price) AS price, num(quantity) AS amount',
  bookTicker:
    'num(best_ask_qty) AS ask_amount, num(best_ask_price) AS ask_price, num(best_bid_price) AS bid_price, num(best_bid_qty) AS bid_amount',
};

const INDEX = 'indexPriceKlines';

/** The close price of a candle is known at its end. Its close time is the last millisecond of the candle. */
const END = '(epoch_us(close_time) // 1000 + 1) * 1000';
/** The values of a ticker, and the microsecond from which they are known. */
const TICKERS: Readonly<Record<string, (spec: DatasetSpec) => string>> = {
  fundingRate: () =>
    'epoch_us(calc_time) AS timestamp, epoch_us(calc_time) AS funding_timestamp, num(last_funding_rate) AS funding_rate',
  metrics: (spec) => `${knownUs(spec)} AS timestamp, num(sum_open_interest) AS open_interest`,
  markPriceKlines: () => `${END} AS timestamp, num(close) AS mark_price`,
  [INDEX]: () => `${END} AS timestamp, num(close) AS index_price`,
};

export const TARDIS: ExportProgram = {
  name: 'tardis',
  datasets: [...Object.keys(EVENTS), ...Object.keys(TICKERS)],
  anyInterval: [...Object.keys(EVENTS), 'fundingRate', 'metrics'],
  groupBy: 'pair',
  files: ({ sources }) =>
    contractsOf(sources).flatMap(({ series, own, pair }) => [
      ...Object.keys(EVENTS).flatMap((dataset) => ofDataset(own, dataset).flatMap(eventFiles)),
      ...tickersOf(own, pair).map((rows) => fileOf('derivative_ticker', series, rows)),
    ]),
  notes: [
    'local_timestamp is the same as timestamp, because the archive has no time of a receiver: latencies computed from these files mean nothing',
  ],
};

const ofDataset = (sources: readonly SeriesRows[], dataset: string): SeriesRows[] =>
  sources.filter(({ series }) => series.dataset === dataset);

/** The sources of each contract. `pair`: the index prices of its pair, if the contract has none. */
function contractsOf(sources: readonly SeriesRows[]) {
  const bySymbol = grouped(sources, ({ series }) => series.symbol);
  const contracts = [...bySymbol].map(([symbol, own]) => {
    const isAlone = !symbol.includes('_') || isSettled(symbol) || ofDataset(own, INDEX).length > 0;
    const pair = isAlone ? [] : (bySymbol.get(symbol.replace(/_.*/, '')) ?? []);
    return { series: own[0].series, own, pair: ofDataset(pair, INDEX) };
  });
  // BTCUSD has only index prices, and those are in the files of BTCUSD_PERP.
  const used = new Set(contracts.flatMap(({ pair }) => pair));
  return contracts.filter(({ own }) => !own.every((source) => used.has(source)));
}

/** `time`: SQL. `from`: SQL of the columns behind the times, and the rest of the statement. */
function fileOf(
  type: string,
  { market, symbol }: Series,
  { day, sources, time, from }: ReturnType<typeof tickersOf>[number],
): ExportFile {
  const exchange = EXCHANGES[market] ?? market;
  return {
    path: `${exchange}/${type}/${dayText(day).replaceAll('-', '/')}/${safeName(symbol)}.csv.gz`,
    sources,
    select: `SELECT ${quoteText(exchange)} AS exchange, ${quoteText(symbol)} AS symbol, ${time} AS timestamp, ${time} AS local_timestamp, ${from}`,
    form: { copy: csvForm({ compression: 'gzip' }) },
  };
}

function eventFiles(source: SeriesRows): ExportFile[] {
  const { series, spec } = source;
  const type = series.dataset === 'bookTicker' ? 'quotes' : 'trades';
  const from = `${EVENTS[series.dataset] ?? ''} FROM r0 ORDER BY ${rowOrder(spec)}`;
  const time = `epoch_us(${instantExpression(spec)})`;
  return exportedDaysOf([source]).map((day) =>
    fileOf(type, series, { day, sources: [onDay(source, day)], time, from }),
  );
}

/** No source need have all columns. */
const NO_VALUES = `SELECT NULL::BIGINT AS timestamp, NULL::BIGINT AS funding_timestamp, NULL::VARCHAR AS funding_rate,
  NULL::VARCHAR AS open_interest, NULL::VARCHAR AS index_price, NULL::VARCHAR AS mark_price WHERE false`;

/** The tickers of a contract, for each day: a row for each time at which a value is known. `pair`: the index prices of its pair. */
function tickersOf(contract: readonly SeriesRows[], pair: readonly SeriesRows[]) {
  const own = shortest(contract.filter(({ series }) => Object.hasOwn(TICKERS, series.dataset)));
  const all = [...own, ...shortest(pair)];
  // The last metrics of a day are known at 00:00 of the next day, and so is its last candle.
  return exportedDaysOf(own, 1).map((day) => {
    const sources = all.map((source) => onDay(source, day, 1)).filter(({ files }) => files.length > 0);
    const values = sources.map(
      ({ series, spec }, at) => `SELECT ${TICKERS[series.dataset]?.(spec) ?? ''} FROM r${at}`,
    );
    // At most one source has a value of a column at a time.
    const from = `max(funding_timestamp) AS funding_timestamp, max(funding_rate) AS funding_rate, NULL AS predicted_funding_rate,
        max(open_interest) AS open_interest, NULL AS last_price, max(index_price) AS index_price, max(mark_price) AS mark_price
      FROM (${[NO_VALUES, ...values].join(' UNION ALL BY NAME ')})
      WHERE timestamp >= ${dayUs(day)} AND timestamp < ${dayUs(day + 1)} GROUP BY timestamp ORDER BY timestamp`;
    return { day, sources, time: 'timestamp', from };
  });
}

/** The start of a day in microseconds since 1970. Tardis has UTC days. */
const dayUs = (day: number): string => String(day * DAY_MS * 1000);

/** Length of the interval of a row of metrics. */
const METRICS_US = 300_000_000;

/**
 * The time at which a row of metrics was known: the end of its interval. Labels mark the start of the interval; in archives that changed their
 * labels, the end before the change. The label of the change occurs twice with different values, so its rows have no time (NULL).
 */
function knownUs({ rest }: DatasetSpec): string {
  const label = 'epoch_us(create_time)';
  const change = rest !== undefined && 'joins' in rest ? parseDay(rest.endLabelsBefore ?? '') : undefined;
  if (change === undefined) return `${label} + ${METRICS_US}`;
  const changeUs = dayUs(change);
  return `CASE WHEN ${label} < ${changeUs} THEN ${label} WHEN ${label} > ${changeUs} THEN ${label} + ${METRICS_US} END`;
}

/** Of series that differ in their interval, the one with the shortest. */
function shortest(sources: readonly SeriesRows[]): SeriesRows[] {
  const ranked = sources.toSorted((a, b) => rankOf(a) - rankOf(b));
  const datasets = ranked.map(({ series }) => series.dataset);
  return ranked.filter((_, at) => datasets.indexOf(datasets[at] ?? '') === at);
}

/** The intervals of a dataset are in order of their length. */
const rankOf = ({ series: { interval = '' }, spec }: SeriesRows): number =>
  (intervalsOf(spec) ?? []).indexOf(interval);
