/** Rows of the simulation: as the archive publishes them, and as a lake must hold them. */
import { argv } from '../../helpers/cli.js';
import { randoms } from '../../helpers/randoms.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Days since the epoch. */
export const dayOf = (text: string): number => Date.parse(`${text}T00:00:00Z`) / DAY_MS;
export const textOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);

export type Dataset = 'klines' | 'aggTrades' | 'metrics';

export interface Series {
  readonly dataset: Dataset;
  readonly symbol: string;
}

export const nameOf = ({ dataset, symbol }: Series): string => `${dataset} ${symbol}`;

/** `cells`: what a lake must hold, times in microseconds; `line`: what the archive prints. */
export interface Row {
  readonly cells: string;
  readonly line: string;
}

export interface Shape {
  /** Times in microseconds instead of milliseconds. */
  readonly isMicro: boolean;
  /** Grid points that have no row. */
  readonly lacks?: readonly number[];
}

/** The columns of a lake, in the order of `cells`. */
export const COLUMNS: Readonly<Record<Dataset, readonly string[]>> = {
  klines: argv`epoch_us(open_time) open high low close volume epoch_us(close_time) quote_volume count taker_buy_volume taker_buy_quote_volume "ignore"`,
  aggTrades: argv`agg_trade_id price quantity first_trade_id last_trade_id epoch_us(transact_time) is_buyer_maker`,
  metrics: argv`epoch_us(create_time) sum_open_interest sum_open_interest_value count_toptrader_long_short_ratio sum_toptrader_long_short_ratio count_long_short_ratio sum_taker_long_short_vol_ratio`,
};

const HEADERS: Readonly<Record<Dataset, string>> = {
  klines:
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
  aggTrades: 'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker',
  metrics:
    'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio',
};

/** Rows that a whole day has. */
export const ROWS_PER_DAY: Readonly<Record<Dataset, number>> = { klines: 24, aggTrades: 96, metrics: 288 };

/** The rows of one day, in time order; another `revision` has other values. */
export function rowsOf(series: Series, day: number, revision: number, shape: Shape): Row[] {
  const random = randoms(seedOf(`${nameOf(series)} ${day} ${revision}`));
  // The first numbers of neighbouring seeds are alike.
  for (let skipped = 0; skipped < 10; skipped += 1) random();
  const rows: Row[] = [];
  for (let index = 0; index < ROWS_PER_DAY[series.dataset]; index += 1) {
    const row = ROW_OF[series.dataset](series.symbol, day, index, random, shape.isMicro);
    if (shape.lacks?.includes(index) !== true) rows.push(row);
  }
  return rows;
}

type MakeRow = (symbol: string, day: number, index: number, random: () => number, isMicro: boolean) => Row;

const ROW_OF: Readonly<Record<Dataset, MakeRow>> = {
  klines: (_symbol, day, index, random, isMicro) => {
    const open = day * DAY_MS + index * HOUR_MS;
    const close = open + HOUR_MS;
    const prices = [decimal(random), '60000.5', '0.00000012', decimal(random)];
    const volume = decimal(random);
    const rest = [decimal(random), String(Math.floor(random() * 1e6)), decimal(random), decimal(random), '0'];
    const closeText = isMicro ? `${close * 1000 - 1}` : `${close - 1}`;
    const closeMicros = isMicro ? close * 1000 - 1 : (close - 1) * 1000;
    return {
      cells: cellsOf(open * 1000, ...prices, volume, closeMicros, ...rest),
      line: [isMicro ? open * 1000 : open, ...prices, volume, closeText, ...rest].join(','),
    };
  },
  aggTrades: (_symbol, day, index, random, isMicro) => {
    const id = day * ROWS_PER_DAY.aggTrades + index;
    const at = day * DAY_MS + index * 900_000 + Math.floor(random() * 60_000);
    const [price, quantity] = [decimal(random), decimal(random)];
    const isMaker = random() < 0.5;
    const ids = [String(2 * id), String(2 * id + 1)];
    return {
      cells: cellsOf(id, price, quantity, ...ids, at * 1000, isMaker),
      line: [id, price, quantity, ...ids, isMicro ? at * 1000 : at, isMaker].join(','),
    };
  },
  metrics: (symbol, day, index, random) => {
    const at = day * DAY_MS + index * 300_000;
    const values = Array.from({ length: 6 }, () => decimal(random));
    const label = new Date(at).toISOString().slice(0, 19).replace('T', ' ');
    return { cells: cellsOf(at * 1000, ...values), line: [label, symbol, ...values].join(',') };
  },
};

/** Cells as a reader of doubles and whole numbers prints them. */
function cellsOf(...cells: readonly (string | number | boolean)[]): string {
  return cells.map((cell) => (typeof cell === 'boolean' ? String(cell) : String(Number(cell)))).join(',');
}

function decimal(random: () => number): string {
  return (1 + random() * 50_000).toFixed(4);
}

function seedOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** Metrics are published out of time order. */
export function csvOf(dataset: Dataset, rows: readonly Row[], hasHeader: boolean): string {
  const lines = rows.map((row) => row.line);
  const ordered = dataset === 'metrics' ? [...lines.slice(30), ...lines.slice(0, 30)] : lines;
  return [...(hasHeader || dataset === 'metrics' ? [HEADERS[dataset]] : []), ...ordered, ''].join('\n');
}
