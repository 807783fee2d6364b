/** The rule of bars: their length in time, or the trades that fill one. */
import { DAY_MS } from '../model/calendar.js';
import { usage } from '../model/errors.js';

/** Bars of equal length, aligned to multiples since 1970-01-01 UTC; weeks begin on a Monday. */
export interface TimeRule {
  readonly kind: 'time';
  readonly lengthMs: number;
  /** A start of a bar, in epoch milliseconds. */
  readonly originMs: number;
  /** As in the path of the series: `15m`. */
  readonly interval: string;
}

/** Bars that close with the trade that makes them full. They begin anew each day. */
export interface TradeRule {
  readonly kind: 'tick' | 'volume' | 'dollar';
  /** Trades, quantity or quote quantity of a full bar: a decimal number in canonical form. */
  readonly size: string;
  /** As in the path of the series: `volume-1000`. */
  readonly interval: string;
}

export type BarRule = TimeRule | TradeRule;

const UNITS = { w: 7 * DAY_MS, d: DAY_MS, h: 3_600_000, m: 60_000 } as const;
/** Monday 1970-01-05. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
/** Each month has the start of a bar of this length, so each month with bars has a file. */
const LONGEST_MS = 28 * DAY_MS;
const TIME = /^(\d{1,7})([mhdw])$/;

const FORMS =
  'a number with m, h, d or w up to 28d (15m, 7m, 2h, 3d, 1w), or tick:500, volume:1000 or dollar:1000000 for bars by trades';

/** Throws a usage error for a text that is no rule. */
export function parseBar(text: string): BarRule {
  const time = TIME.exec(text);
  if (time !== null) return timeRule(text, time);
  const trades = /^(tick|volume|dollar)[:-](\d{1,18})(?:\.(\d{1,8}))?$/.exec(text);
  if (trades !== null) return tradeRule(text, trades);
  throw noBar(text);
}

function noBar(text: string): Error {
  return usage(`bars: "${text}" is no bar`, `a bar is ${FORMS}`);
}

function timeRule(text: string, [, number, unit]: RegExpExecArray): TimeRule {
  const lengthMs = Number(number) * UNITS[unit as keyof typeof UNITS];
  if (lengthMs === 0 || lengthMs > LONGEST_MS) throw noBar(text);
  if (unit === 'w')
    return { kind: 'time', lengthMs, originMs: FIRST_MONDAY_MS, interval: `${lengthMs / UNITS.w}w` };
  // In the largest unit: 60m are 1h, and 24h are 1d. Seven days are no week, because weeks begin on a Monday.
  const largest = (['d', 'h'] as const).find((one) => lengthMs % UNITS[one] === 0) ?? 'm';
  return { kind: 'time', lengthMs, originMs: 0, interval: `${lengthMs / UNITS[largest]}${largest}` };
}

function tradeRule(text: string, [, kind, whole = '', fraction = '']: RegExpExecArray): TradeRule {
  const digits = fraction.replace(/(?<!0)0+$/, '');
  const size = `${whole.replace(/^0+(?=\d)/, '')}${digits === '' ? '' : `.${digits}`}`;
  if (size === '0' || (kind === 'tick' && digits !== '')) throw noBar(text);
  return { kind: kind as TradeRule['kind'], size, interval: `${kind ?? ''}-${size}` };
}

/** The start of the bar that has this time, in epoch milliseconds. */
export function barStart({ lengthMs, originMs }: TimeRule, atMs: number): number {
  return Math.floor((atMs - originMs) / lengthMs) * lengthMs + originMs;
}

/** The first start of a bar at or after this time. */
export function nextStart(rule: TimeRule, atMs: number): number {
  return barStart(rule, atMs + rule.lengthMs - 1);
}
