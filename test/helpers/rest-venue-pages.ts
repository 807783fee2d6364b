/** Pages of rows, cut as each endpoint of the exchange cuts them. */
import { json, refuse } from './rest-venue-answers.js';
import type { Ask } from './rest-venue-ask.js';
import { limitOf, numberOf, pairAsked, spanOf, spanWithin, symbolOf, textOf } from './rest-venue-ask.js';
import type { Bars } from './rest-venue-market.js';
import { barsOf, firstTrade, klineWriter, tradeClock, tradeWriter } from './rest-venue-market.js';
import { fundingEvents, statisticOf, statisticWriter, timeText } from './rest-venue-rows.js';
import type { FundingEvent } from './rest-venue-rows.js';
import type { VenueAnswer, VenueSymbol } from './rest-venue-types.js';
import { contractOf, DAY_MS, endOf, firstOf, HOUR_MS } from './rest-venue-types.js';

const PERIODS: Readonly<Record<string, number>> = {
  '5m': 300_000,
  '15m': 900_000,
  '30m': 1_800_000,
  '1h': HOUR_MS,
  '2h': 2 * HOUR_MS,
  '4h': 4 * HOUR_MS,
  '6h': 6 * HOUR_MS,
  '12h': 12 * HOUR_MS,
  '1d': DAY_MS,
};
const MOST_POINTS = 500;
const STATISTICS_WALL_MS = 30 * DAY_MS;
/** A point comes out this long after its label. */
const POINT_DELAY_MS = 6000;

/** One after the other, from `first` on, `step` apart. */
function rowsOf(first: number, count: number, step: number, write: (at: number) => string): VenueAnswer {
  const rows: string[] = [];
  for (let row = 0; row < count; row += 1) rows.push(write(first + row * step));
  return json(`[${rows.join(',')}]`);
}

export function statisticsPage(dataset: string, ask: Ask): VenueAnswer {
  const subject = subjectOf(dataset, ask);
  const step = PERIODS[textOf(ask, 'period')];
  if (step === undefined) throw refuse(-1130, "parameter 'period' is invalid.");
  const limit = limitOf(ask, 30, MOST_POINTS);
  const wall = ask.now - STATISTICS_WALL_MS;
  const { start, end } = spanWithin(ask, wall);
  if (subject === undefined) return json('[]');
  // A start without an end is not even looked at: the newest rows come, whenever it was.
  const isSpan = start !== undefined && end !== undefined;
  const from = isSpan ? start : wall;
  const until = Math.min(end ?? ask.now, ask.now - POINT_DELAY_MS, endOf(subject) - 1);
  const newest = Math.floor(until / step) * step;
  const oldest = Math.ceil(Math.max(from, wall, firstOf(subject)) / step) * step;
  const points = Math.max(0, (newest - oldest) / step + 1);
  // A window of 500 periods has 501 ends of periods, and all of them come.
  const isFull = isSpan && limit === MOST_POINTS && end - start === MOST_POINTS * step;
  const count = Math.min(points, isFull ? MOST_POINTS + 1 : limit);
  return rowsOf(newest - (count - 1) * step, count, step, statisticWriter(dataset, subject));
}

/** What the statistic is asked of; undefined when the pair has no such contract now. */
function subjectOf(dataset: string, ask: Ask): VenueSymbol | undefined {
  const kind = statisticOf(dataset, ask.host)?.of;
  if (kind === 'symbol' || kind === 'unnamed') return symbolOf(ask);
  const symbols = pairAsked(ask);
  if (kind === 'pair') return together(symbols);
  const type = textOf(ask, 'contractType');
  const isKnown = ['PERPETUAL', 'CURRENT_QUARTER', 'NEXT_QUARTER'].includes(type);
  const isOfAll = type === 'ALL' && dataset !== 'basis';
  const isTraditional = symbols.every((symbol) => symbol.contractType === 'TRADIFI_PERPETUAL');
  if ((!isKnown && !isOfAll) || isTraditional) throw refuse(-4104, 'Invalid contract type');
  return isOfAll
    ? { ...together(symbols), contractType: 'ALL' }
    : symbols.find((symbol) => contractOf(symbol) === type);
}

/** There from the first day of the oldest to the last of the youngest. */
function together(symbols: readonly [VenueSymbol, ...VenueSymbol[]]): VenueSymbol {
  const from = Math.min(...symbols.map(firstOf));
  return { ...symbols[0], from, to: Math.max(...symbols.map(endOf)) };
}

export function fundingRatePage(ask: Ask, longest: number): VenueAnswer {
  const most = Math.min(limitOf(ask, 100, 1000), longest);
  const isOfAll = ask.host === 'fapi' && !ask.query.has('symbol');
  const symbols = isOfAll ? ask.book.listed(ask.host, ask.now) : [symbolOf(ask)];
  const { start, end } = spanOf(ask);
  const to = Math.min(end ?? ask.now, ask.now);
  const found = symbols.flatMap((symbol) => {
    const stepMs = (symbol.fundingHours ?? 8) * HOUR_MS;
    const events = fundingEvents(symbol, start ?? to - (most + 1) * stepMs, to, most + 2);
    return events.map((event) => ({ symbol: symbol.symbol, ...event }));
  });
  if (isOfAll) found.sort((a, b) => a.fundingTime - b.fundingTime);
  const page = start === undefined ? found.slice(-most) : found.slice(0, most);
  return json(`[${page.map(fundingRow).join(',')}]`);
}

function fundingRow(event: FundingEvent & { readonly symbol: string }): string {
  return `{"symbol":"${event.symbol}","fundingTime":${timeText(event.fundingTime)},"fundingRate":"${event.fundingRate}","markPrice":"${event.markPrice}","rateType":"${event.rateType}"}`;
}

const KLINES_WALL_MS = 200 * DAY_MS;

export function klinesPage(ask: Ask): VenueAnswer {
  const symbol = symbolOf(ask);
  const bars = barsOf(textOf(ask, 'interval'), ask.host);
  if (bars === undefined) throw refuse(-1120, 'Invalid interval.');
  const limit = limitOf(ask, 500, ask.host === 'spot' ? 1000 : 1500);
  const { start, end } = ask.host === 'dapi' ? coinSpan(ask) : spanOf(ask);
  const newest = bars.start(Math.min(end ?? ask.now, ask.now, endOf(symbol) - 1));
  const eldest = bars.start(firstOf(symbol));
  // A candle is in the span when its beginning is.
  const oldest = Math.max(eldest, start === undefined ? eldest : bars.move(bars.start(start - 1), 1));
  const isFromStart = start !== undefined && ask.host !== 'dapi';
  const first = isFromStart ? oldest : Math.max(oldest, bars.move(newest, 1 - limit));
  return json(`[${candlesFrom(first, newest, limit, bars, klineWriter(symbol, bars, ask.now))}]`);
}

function candlesFrom(
  first: number,
  newest: number,
  limit: number,
  bars: Bars,
  write: (openMs: number) => string,
): string {
  const rows: string[] = [];
  for (let open = first; rows.length < limit && open <= newest; open = bars.move(open, 1))
    rows.push(write(open));
  return rows.join(',');
}

/** COIN-M puts the end that is missing 200 days from the other. */
function coinSpan(ask: Ask): { start: number | undefined; end: number | undefined } {
  const { start, end } = spanOf(ask);
  if (start === undefined) return { start: end === undefined ? undefined : end - KLINES_WALL_MS, end };
  if (end === undefined) return { start, end: start + KLINES_WALL_MS };
  if (end - start > KLINES_WALL_MS) throw refuse(-4088, 'Maximum time interval is 200 days.');
  return { start, end };
}

const TRADES_WALL_MS = 2 * DAY_MS;

export function aggTradesPage(ask: Ask): VenueAnswer {
  const symbol = symbolOf(ask);
  const limit = limitOf(ask, 500, 1000);
  const fromId = numberOf(ask, 'fromId');
  const { start, end } = spanOf(ask);
  if (ask.host !== 'spot') refuseOld(ask, symbol, fromId, [start, end]);
  const until = Math.min(end ?? ask.now, ask.now);
  const behind = firstTrade(symbol, until + 1);
  const isFromStart = fromId !== undefined || start !== undefined;
  const oldest = Math.max(1, fromId ?? 1, start === undefined ? 1 : firstTrade(symbol, start));
  const first = isFromStart ? oldest : Math.max(1, behind - limit);
  return rowsOf(first, Math.min(limit, behind - first), 1, tradeWriter(symbol));
}

function refuseOld(
  ask: Ask,
  symbol: VenueSymbol,
  fromId: number | undefined,
  times: readonly (number | undefined)[],
): void {
  if (fromId !== undefined && times.some((time) => time !== undefined))
    throw refuse(-1128, 'Combination of optional parameters invalid.');
  const wall = ask.now - TRADES_WALL_MS;
  const asked = fromId === undefined ? times : [tradeClock(symbol)(Math.max(1, fromId))];
  if (asked.some((time) => time !== undefined && time < wall))
    throw refuse(-4166, 'Search window is restricted to recent 2 days only.');
}
