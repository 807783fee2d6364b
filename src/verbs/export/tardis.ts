/**
 * CSV files in the schema of Tardis, one per type, UTC day and symbol: trades, quotes and derivative_ticker. Read by nautilus_trader and
 * hftbacktest, which take columns by their order.
 */
import { instantExpression } from '../../convert/columns.js';
import { quoteText } from '../../convert/sql.js';
import { grouped } from '../../model/by-name.js';
import { dayText } from '../../model/calendar.js';
import { safeName } from '../../lake/safe-names.js';
import type { Series } from '../../model/task.js';
import { isSettled } from '../../exchange/pairs.js';
import { csvForm, daysOf, onDay, rowOrder } from './export-file.js';
import type { ExportProgram, ExportFile, SeriesRows } from './export-file.js';
import { INDEX, TICKERS, tickersOf } from './tardis-ticker.js';

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

function ofDataset(sources: readonly SeriesRows[], dataset: string): SeriesRows[] {
  return sources.filter(({ series }) => series.dataset === dataset);
}

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
  return daysOf([source]).map((day) =>
    fileOf(type, series, { day, sources: [onDay(source, day)], time, from }),
  );
}
