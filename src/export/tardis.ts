/**
 * CSV files in the schema of Tardis, one per type, UTC day and symbol: trades, quotes and derivative_ticker. Read by nautilus_trader and
 * hftbacktest, which take columns by their order.
 */
import { quoteName, quoteText } from '../convert/sql.js';
import { DAY_MS, dayText, parseDay } from '../model/calendar.js';
import { safeName } from '../lake/layout.js';
import type { Series } from '../model/task.js';
import { isSettled } from '../source/pairs.js';
import { intervalsOf } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { csvForm, daysOf, fileOf, onDay } from './export-file.js';
import type { Engine, ExportFile, RowSource } from './export-file.js';
import { epochUs, numberText } from './value-text.js';

/** Names of exchanges at Tardis. */
const EXCHANGES: Readonly<Record<string, string>> = {
  spot: 'binance',
  um: 'binance-futures',
  cm: 'binance-delivery',
  option: 'binance-options',
};

/** In a file of trades, those of the first dataset. */
const EVENTS = ['trades', 'aggTrades', 'bookTicker'];
const OF_TICKER = ['fundingRate', 'metrics', 'markPriceKlines', 'indexPriceKlines'];

export const TARDIS: Engine = {
  name: 'tardis',
  datasets: [...EVENTS, ...OF_TICKER],
  onlyNamed: [],
  anyInterval: [...EVENTS, 'fundingRate', 'metrics'],
  groupBy: 'pair',
  files: ({ sources }) =>
    contractsOf(sources).flatMap(({ own, pair }) => [
      ...EVENTS.flatMap((dataset) => own.filter(({ series }) => series.dataset === dataset)).flatMap(
        eventFiles,
      ),
      ...tickerFiles(own, pair),
    ]),
  notes: [
    'local_timestamp is the same as timestamp, because the archive has no time of a receiver: latencies computed from these files mean nothing',
  ],
};

interface Contract {
  readonly own: readonly RowSource[];
  /** The index prices of its pair, if the contract has none. */
  readonly pair: readonly RowSource[];
}

function isIndex({ series }: RowSource): boolean {
  return series.dataset === 'indexPriceKlines';
}

function contractsOf(sources: readonly RowSource[]): Contract[] {
  const symbols = [...new Set(sources.map(({ series }) => series.symbol))];
  const contracts = symbols.map((symbol) => {
    const own = sources.filter(({ series }) => series.symbol === symbol);
    const isAlone = !symbol.includes('_') || isSettled(symbol) || own.some(isIndex);
    const ofPair = (source: RowSource): boolean =>
      isIndex(source) && source.series.symbol === symbol.replace(/_.*/, '');
    return { own, pair: isAlone ? [] : sources.filter(ofPair) };
  });
  // BTCUSD has only index prices, and those are in the files of BTCUSD_PERP.
  const used = new Set(contracts.flatMap(({ pair }) => pair));
  return contracts.filter(({ own }) => !own.every((source) => used.has(source)));
}

const GZIP = { copy: csvForm({ compression: 'gzip' }) } as const;

function pathOf(type: string, { market, symbol }: Series, day: number): string {
  const date = dayText(day).replaceAll('-', '/');
  return `${EXCHANGES[market] ?? market}/${type}/${date}/${safeName(symbol)}.csv.gz`;
}

/** The files of trades or quotes of a series. */
function eventFiles(source: RowSource): ExportFile[] {
  const { series } = source;
  const type = series.dataset === 'bookTicker' ? 'quotes' : 'trades';
  return daysOf([source]).map((day) =>
    fileOf(pathOf(type, series, day), onDay(source, day), GZIP, (rows) => eventQuery(series, rows)),
  );
}

function eventQuery(series: Series, rows: string): string {
  if (series.dataset === 'bookTicker')
    return `SELECT ${head(series, 'transaction_time')}, ${numberText('best_ask_qty')} AS ask_amount,
        ${numberText('best_ask_price')} AS ask_price, ${numberText('best_bid_price')} AS bid_price, ${numberText('best_bid_qty')} AS bid_amount
        FROM (${rows}) ORDER BY transaction_time, update_id`;
  const [time, id, amount] =
    series.dataset === 'trades' ? ['time', 'id', 'qty'] : ['transact_time', 'agg_trade_id', 'quantity'];
  return `SELECT ${head(series, time)}, ${quoteName(id)} AS id,
        CASE WHEN is_buyer_maker THEN 'sell' ELSE 'buy' END AS side, ${numberText('price')} AS price, ${numberText(amount)} AS amount FROM (${rows})
        ORDER BY timestamp, ${quoteName(id)}`;
}

/** A row for each time at which a value is known: a funding rate, an open interest, or the price at the end of a mark or index candle. */
function tickerFiles(contract: readonly RowSource[], pair: readonly RowSource[]): ExportFile[] {
  const own = shortest(contract.filter(({ series }) => OF_TICKER.includes(series.dataset)));
  const [first] = own;
  if (first === undefined) return [];
  const sources = [...own, ...shortest(pair)];
  // The last metrics of a day are known at 00:00 of the next day, and so is its last candle.
  return daysOf(own, 1).map((day) => {
    const parts = sources.map((source) => onDay(source, day, 1)).filter(({ files }) => files.length > 0);
    return {
      path: pathOf('derivative_ticker', first.series, day),
      sources: parts,
      select: (
        relations,
      ) => `SELECT ${exchangeAndSymbol(first.series)}, timestamp, timestamp AS local_timestamp, ${value('funding_timestamp')},
        ${value('funding_rate')}, CAST(NULL AS VARCHAR) AS predicted_funding_rate, ${value('open_interest')}, CAST(NULL AS VARCHAR) AS last_price,
        ${value('index_price')}, ${value('mark_price')}
      FROM (${relations.map((rows, at) => tickerPart(parts[at], rows)).join(' UNION ALL BY NAME ')})
      WHERE timestamp >= ${dayUs(day)} AND timestamp < ${dayUs(day + 1)}
      GROUP BY timestamp ORDER BY timestamp`,
      form: GZIP,
    };
  });
}

const TICKER_COLUMNS = ['funding_timestamp', 'funding_rate', 'open_interest', 'index_price', 'mark_price'];

/** At most one source has a value of a column at a time. */
function value(column: string): string {
  return `max(${column}) AS ${column}`;
}

/** The start of a day in microseconds since 1970. Tardis has UTC days. */
function dayUs(day: number): string {
  return String(day * DAY_MS * 1000);
}

/** The values of one source: `timestamp`, and each column of the ticker, NULL if the source does not have it. */
function tickerPart(source: RowSource | undefined, rows: string): string {
  const values = source === undefined ? {} : tickerValues(source);
  const columns = TICKER_COLUMNS.map((name) => {
    const type = name === 'funding_timestamp' ? 'BIGINT' : 'VARCHAR';
    return `CAST(${values[name] ?? 'NULL'} AS ${type}) AS ${name}`;
  });
  return `SELECT ${values['timestamp'] ?? ''} AS timestamp, ${columns.join(', ')} FROM (${rows})`;
}

function tickerValues({ series, spec }: RowSource): Readonly<Record<string, string>> {
  switch (series.dataset) {
    case 'fundingRate':
      return {
        timestamp: epochUs('calc_time'),
        funding_timestamp: epochUs('calc_time'),
        funding_rate: numberText('last_funding_rate'),
      };
    case 'metrics':
      return { timestamp: knownUs(spec), open_interest: numberText('sum_open_interest') };
    default: {
      // The close price of a candle is known at its end. Its close time is the last millisecond of the candle.
      const end = `(${epochUs('close_time')} // 1000 + 1) * 1000`;
      const name = series.dataset === 'markPriceKlines' ? 'mark_price' : 'index_price';
      return { timestamp: end, [name]: numberText('close') };
    }
  }
}

/** Length of the interval of a row of metrics. */
const METRICS_US = 300_000_000;

/**
 * The time at which a row of metrics was known: the end of its interval. Labels mark the start of the interval; in archives that changed their
 * labels, the end before the change. The label of the change occurs twice with different values, so its rows have no time (NULL).
 */
function knownUs({ rest }: DatasetSpec): string {
  const label = epochUs('create_time');
  const change = rest !== undefined && 'joins' in rest ? parseDay(rest.endLabelsBefore ?? '') : undefined;
  if (change === undefined) return `${label} + ${METRICS_US}`;
  const changeUs = dayUs(change);
  return `CASE WHEN ${label} < ${changeUs} THEN ${label} WHEN ${label} > ${changeUs} THEN ${label} + ${METRICS_US} END`;
}

/** Of series that differ in their interval, the one with the shortest. */
function shortest(sources: readonly RowSource[]): RowSource[] {
  const ranked = sources.toSorted((a, b) => rankOf(a) - rankOf(b));
  const datasets = ranked.map(({ series }) => series.dataset);
  return ranked.filter((_, at) => datasets.indexOf(datasets[at] ?? '') === at);
}

/** The intervals of a dataset are in order of their length. */
function rankOf({ series: { interval = '' }, spec }: RowSource): number {
  return (intervalsOf(spec) ?? []).indexOf(interval);
}

function exchangeAndSymbol({ market, symbol }: Series): string {
  return `${quoteText(EXCHANGES[market] ?? market)} AS exchange, ${quoteText(symbol)} AS symbol`;
}

function head(series: Series, time: string): string {
  return `${exchangeAndSymbol(series)}, ${epochUs(time)} AS timestamp, ${epochUs(time)} AS local_timestamp`;
}
