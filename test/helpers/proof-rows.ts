/** Rows that an exchange had, by series: what a random archive publishes whole, cut, late or never. */

export const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export const textOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);
export const monthOf = (day: number): string => textOf(day).slice(0, 7);
/** The first day of the month `YYYY-MM`, moved by months. */
export function monthStart(month: string, plus = 0): number {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return Date.UTC(year, number - 1 + plus, 1) / DAY_MS;
}

export interface ProofSeries {
  readonly market: 'um' | 'spot';
  readonly dataset: string;
  readonly interval?: string;
  readonly symbol: string;
}

/** `key`: its identity in the lake, a number. `day`: the day of the object that has it. */
export interface ProofRow {
  readonly key: number;
  readonly day: number;
  readonly line: string;
}

/** When a symbol traded: epoch milliseconds `[from, to)`. */
export interface Life {
  readonly from: number;
  readonly to: number;
}

const INTERVALS: Readonly<Record<string, number>> = {
  '1h': HOUR_MS,
  '8h': 8 * HOUR_MS,
  '1d': DAY_MS,
  '3d': 3 * DAY_MS,
  '1w': 7 * DAY_MS,
};

export const nameOf = ({ dataset, interval, symbol }: ProofSeries): string =>
  [dataset, interval, symbol].filter((part) => part !== undefined).join(' ');

/** Bars above a day are published by month only, as settlements are; metrics only by day. */
export const isMonthly = ({ dataset, interval }: ProofSeries): boolean =>
  dataset === 'fundingRate' || interval === '3d' || interval === '1w';
export const isDaily = (series: ProofSeries): boolean => !isMonthly(series);
export const hasMonths = ({ dataset }: ProofSeries): boolean => dataset !== 'metrics';
const isTick = ({ dataset }: ProofSeries): boolean => dataset === 'trades' || dataset === 'aggTrades';

/** All rows of a series on days `[from, to)`, in order of time. */
export function exchangeRows(
  series: ProofSeries,
  lives: readonly Life[],
  { from, to }: { readonly from: number; readonly to: number },
  random: () => number,
): ProofRow[] {
  return lives.flatMap((life) => {
    const start = Math.max(life.from, from * DAY_MS);
    const end = Math.min(life.to, to * DAY_MS);
    if (start >= end) return [];
    if (isTick(series)) return ticks(series, start, end, random);
    if (series.dataset === 'metrics') return metrics(series.symbol, start, end);
    if (series.dataset === 'fundingRate') return settlements(start, end, random);
    return bars(series, start, end);
  });
}

function bars({ market, interval = '' }: ProofSeries, start: number, end: number): ProofRow[] {
  const step = INTERVALS[interval] ?? DAY_MS;
  // Weeks begin on Mondays: 1970-01-05 was one. Bars of three days have one phase for all symbols.
  const phase = interval === '1w' ? 4 * DAY_MS : 0;
  const rows: ProofRow[] = [];
  // The bar in which a symbol is listed is the first one; it begins before the listing.
  for (let at = Math.floor((start - phase) / step) * step + phase; at < end; at += step) {
    const unit = market === 'spot' && at >= Date.UTC(2025, 0, 1) ? 1000 : 1;
    const close = (at + step) * unit - 1;
    const line = `${at * unit},1.5,2.5,1.5,2,10,${close},20,3,5,10,0`;
    rows.push({ key: at, day: Math.floor(at / DAY_MS), line });
  }
  return rows;
}

/** A trade in each half-hour, and some more. Ids are contiguous, each aggregate has two trades. */
function ticks(
  { market, dataset }: ProofSeries,
  start: number,
  end: number,
  random: () => number,
): ProofRow[] {
  const rows: ProofRow[] = [];
  let id = 1000;
  for (let at = start; at < end; at += HOUR_MS / 2) {
    const count = random() < 0.1 ? 3 : 1;
    for (let i = 0; i < count; i += 1) {
      const time = at + i * 1000 + Math.floor(random() * 900);
      const unit = market === 'spot' && time >= Date.UTC(2025, 0, 1) ? 1000 : 1;
      const best = market === 'spot' ? ',True' : '';
      const maker = market === 'spot' ? 'True' : 'true';
      const line =
        dataset === 'trades'
          ? `${id},1.5,2,3,${time * unit},${maker}${best}`
          : `${id},1.5,2,${2 * id},${2 * id + 1},${time * unit},${maker}${best}`;
      rows.push({ key: id, day: Math.floor(time / DAY_MS), line });
      id += 1;
    }
  }
  return rows;
}

/** A label is the end of its five minutes, so the last one of a day is 00:00 of the next. */
function metrics(symbol: string, start: number, end: number): ProofRow[] {
  const rows: ProofRow[] = [];
  for (let at = start + 300_000; at <= end; at += 300_000) {
    const label = new Date(at).toISOString().slice(0, 19).replace('T', ' ');
    rows.push({ key: at, day: Math.floor((at - 1) / DAY_MS), line: `${label},${symbol},1.5,2.5,1,1,1,1` });
  }
  return rows;
}

/** Every 8 hours; from a random day on, every 4. */
function settlements(start: number, end: number, random: () => number): ProofRow[] {
  const change = random() < 0.3 ? start + Math.floor((random() * (end - start)) / DAY_MS) * DAY_MS : Infinity;
  const rows: ProofRow[] = [];
  let hours = 8;
  for (let at = Math.ceil(start / (8 * HOUR_MS)) * 8 * HOUR_MS; at < end; at += hours * HOUR_MS) {
    const jitter = Math.floor(random() * 20);
    rows.push({ key: at, day: Math.floor(at / DAY_MS), line: `${at + jitter},${hours},0.0001` });
    hours = at >= change ? 4 : 8;
  }
  return rows;
}

const HEADERS: Readonly<Record<string, string>> = {
  klines:
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
  aggTrades: 'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker',
  trades: 'id,price,qty,quote_qty,time,is_buyer_maker',
  metrics:
    'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio',
  fundingRate: 'calc_time,funding_interval_hours,last_funding_rate',
};

export function csvOf({ market, dataset }: ProofSeries, rows: readonly ProofRow[]): string {
  const name = dataset === 'markPriceKlines' ? 'klines' : dataset;
  const header = market === 'spot' ? [] : [HEADERS[name] ?? ''];
  return [...header, ...rows.map(({ line }) => line), ''].join('\n');
}
