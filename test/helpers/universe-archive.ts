/** Archives of klines with volumes and listings that a test chooses. */
import { writeObject } from './published.js';

const DAY_MS = 86_400_000;
const HEADER =
  'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore';
const FOLDERS = { spot: 'spot', um: 'futures/um', cm: 'futures/cm' } as const;

export interface DayVolume {
  /** A decimal as published. */
  readonly quote: string;
  readonly base?: string;
  readonly count?: number;
}

export interface TradedSymbol {
  readonly symbol: string;
  readonly market?: keyof typeof FOLDERS;
  /** Default: 1d. The volumes of a day are divided into equal bars. */
  readonly interval?: '1d' | '12h' | '6h' | '1h';
  /** By day: `2024-01-31`. Other days have no row. */
  readonly days: ReadonlyMap<string, DayVolume>;
  /** Further rows of days, after those of `days`. */
  readonly again?: ReadonlyMap<string, DayVolume>;
}

const BARS = { '1d': 1, '12h': 2, '6h': 4, '1h': 24 } as const;

/** Writes monthly objects of the days of complete months before `now`, and daily objects of the other days. */
export function writeTraded(archive: string, traded: TradedSymbol, now: string): void {
  const { symbol, market = 'um', interval = '1d', days, again } = traded;
  const thisMonth = now.slice(0, 7);
  const objects = new Map<string, string[]>();
  for (const [day, volume] of [...days].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const month = day.slice(0, 7);
    const period = month < thisMonth ? month : day;
    const second = again?.get(day);
    const bars = [volume, ...(second === undefined ? [] : [second])].flatMap((one) =>
      barsOf(day, one, BARS[interval]),
    );
    objects.set(period, [...(objects.get(period) ?? []), ...bars]);
  }
  for (const [period, lines] of objects) {
    const cadence = period.length === 7 ? 'monthly' : 'daily';
    const key = `data/${FOLDERS[market]}/${cadence}/klines/${symbol}/${interval}/${symbol}-${interval}-${period}`;
    writeObject(archive, key, market === 'spot' ? lines : [HEADER, ...lines]);
  }
}

function barsOf(day: string, { quote, base = '1', count = 1 }: DayVolume, bars: number): string[] {
  const start = Date.parse(`${day}T00:00:00Z`);
  const length = DAY_MS / bars;
  return Array.from({ length: bars }, (_, at) => {
    const open = start + at * length;
    // Quotes of several bars are whole numbers that a test makes divisible.
    const part = (text: string): string => (bars === 1 ? text : String(Number(text) / bars));
    return `${open},1,1,1,1,${part(base)},${open + length - 1},${part(quote)},${count},0,0,0`;
  });
}

/** The days `[from, to]` as `2024-01-31`. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = [];
  for (let ms = Date.parse(from); ms <= Date.parse(to); ms += DAY_MS)
    days.push(new Date(ms).toISOString().slice(0, 10));
  return days;
}
