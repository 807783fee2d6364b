/**
 * Metrics and settlements on both sides of the change of labels on 2026-06-25. Each value is the minute at which it was known, so that a
 * join which takes a value from the future is seen. The oracle knows nothing of labels but which rows carry the doubled one.
 */
import { publish } from './published.js';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
/** um metrics label a row with the end of its five minutes before this time, and with their start from it on. */
const CHANGE = Date.UTC(2026, 5, 25);
const METRICS_HEADER =
  'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio';

export const SYMBOLS: readonly string[] = [
  'BTCUSDT',
  'ETHUSDT',
  ...Array.from({ length: 28 }, (_, index) => `C${String(index + 10)}USDT`),
];
/** The archive lacks all metrics of the last symbol, and a day of the second one. */
const WITHOUT_METRICS = SYMBOLS.at(-1);
const HOLE = { symbol: 'ETHUSDT', day: Date.UTC(2026, 5, 27) };
/** Days of metrics. Bars begin before the first one. */
const METRICS_DAYS = { from: Date.UTC(2026, 5, 18), to: Date.UTC(2026, 6, 2) };
const MONTHS = ['2026-06', '2026-07'];

/** A bar of a joined table. `interest` and `rate` are undefined where the join found none. */
export interface JoinedBar {
  readonly symbol: string;
  readonly openTime: number;
  readonly interest: number | undefined;
  readonly rate: number | undefined;
}

/** The value that is known at a time: its minute, and two digits of the symbol. */
function valueOf(symbol: string, known: number): number {
  return (known / MINUTE_MS) * 100 + SYMBOLS.indexOf(symbol);
}

/** Publishes the metrics of each day and the settlements of each month. */
export function publishKnownTimes(folder: string, symbols = SYMBOLS): void {
  for (const symbol of symbols) {
    for (let day = METRICS_DAYS.from; day < METRICS_DAYS.to; day += DAY_MS)
      if (hasMetrics(symbol, day)) publishMetricsDay(folder, symbol, day);
    for (const month of MONTHS) {
      const rows = settlementsOf(symbol, month).map(
        (at) => `${at + (at % 7) * 4 + 2},${hoursOf(symbol)},${rateText(symbol, at)}`,
      );
      publish(
        folder,
        `data/futures/um/monthly/fundingRate/${symbol}/${symbol}-fundingRate-${month}.zip`,
        `${['calc_time,funding_interval_hours,last_funding_rate', ...rows].join('\n')}\n`,
      );
    }
  }
}

function hasMetrics(symbol: string, day: number): boolean {
  return symbol !== WITHOUT_METRICS && !(symbol === HOLE.symbol && day === HOLE.day);
}

function publishMetricsDay(folder: string, symbol: string, day: number): void {
  const rows = Array.from({ length: 288 }, (_, index) => {
    const start = day + index * 5 * MINUTE_MS;
    const known = start + 5 * MINUTE_MS;
    const label = new Date(day < CHANGE ? known : start).toISOString().slice(0, 19).replace('T', ' ');
    return `${label},${symbol},${valueOf(symbol, known)},1,1,1,1,1`;
  });
  const name = `${symbol}-metrics-${new Date(day).toISOString().slice(0, 10)}.zip`;
  publish(
    folder,
    `data/futures/um/daily/metrics/${symbol}/${name}`,
    `${[METRICS_HEADER, ...rows].join('\n')}\n`,
  );
}

function hoursOf(symbol: string): number {
  return SYMBOLS.indexOf(symbol) % 3 === 0 ? 8 : 4;
}

function settlementsOf(symbol: string, month: string): number[] {
  const start = Date.parse(`${month}-01T00:00:00Z`);
  const step = hoursOf(symbol) * 60 * MINUTE_MS;
  return Array.from({ length: (31 * DAY_MS) / step }, (_, index) => start + index * step).filter((at) =>
    new Date(at).toISOString().startsWith(month),
  );
}

function rateText(symbol: string, at: number): string {
  return `0.${String(valueOf(symbol, at)).padStart(12, '0')}`;
}

/** The bars of 1h of both months, with the newest value that was known at the start of each, sorted. */
export function expectedBars(): JoinedBar[] {
  const [from, to] = [Date.UTC(2026, 5, 1), Date.UTC(2026, 7, 1)];
  return [...SYMBOLS].sort().flatMap((symbol) => {
    const settled = new Set(MONTHS.flatMap((month) => settlementsOf(symbol, month)));
    return Array.from({ length: (to - from) / (60 * MINUTE_MS) }, (_, index) => {
      const openTime = from + index * 60 * MINUTE_MS;
      const known = newestKnown(symbol, openTime);
      return {
        symbol,
        openTime,
        interest: known === undefined ? undefined : valueOf(symbol, known),
        rate: settled.has(openTime) ? Number(rateText(symbol, openTime)) : undefined,
      };
    });
  });
}

function newestKnown(symbol: string, time: number): number | undefined {
  for (let known = time; known > METRICS_DAYS.from; known -= 5 * MINUTE_MS) {
    const start = known - 5 * MINUTE_MS;
    const day = start - (start % DAY_MS);
    // The rows of the doubled label are those known at the change and five minutes after it.
    const isDoubled = known === CHANGE || start === CHANGE;
    if (day < METRICS_DAYS.to && hasMetrics(symbol, day) && !isDoubled) return known;
  }
  return undefined;
}

/** Whether the metrics of a bar were not known yet when it opened. */
export function isFromTheFuture({ openTime, interest }: JoinedBar): boolean {
  return interest !== undefined && Math.floor(interest / 100) * MINUTE_MS > openTime;
}
