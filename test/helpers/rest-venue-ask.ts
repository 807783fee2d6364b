/** A request to a REST venue, and what its parameters say. Whatever is wrong with them is thrown as a `Refusal`. */
import { refuse, Refusal, wallError } from './rest-venue-answers.js';
import type { Host, SymbolBook, VenueSymbol } from './rest-venue-types.js';

export interface Ask {
  readonly host: Host;
  readonly query: URLSearchParams;
  readonly now: number;
  readonly book: SymbolBook;
}

export function textOf({ query }: Ask, name: string): string {
  const text = query.get(name);
  if (text === null || text === '') throw missing(name);
  return text;
}

function missing(name: string): Refusal {
  return refuse(-1102, `Mandatory parameter '${name}' was not sent, was empty/null, or malformed.`);
}

export function numberOf({ query }: Ask, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!/^\d{1,20}$/.test(text))
    throw refuse(-1100, `Illegal characters found in parameter '${name}'; legal range is '^[0-9]{1,20}$'.`);
  return Number(text);
}

/** More than the most is refused everywhere: where the real one only clamps, a client has still asked for too much. */
export function limitOf(ask: Ask, usual: number, most: number): number {
  const limit = numberOf(ask, 'limit') ?? usual;
  if (limit < 1 || limit > most) throw refuse(-1130, "Data sent for parameter 'limit' is not valid.");
  return limit;
}

interface Span {
  readonly start: number | undefined;
  readonly end: number | undefined;
}

/** Both ends are inclusive. */
export function spanOf(ask: Ask): Span {
  const start = numberOf(ask, 'startTime');
  const end = numberOf(ask, 'endTime');
  if (ask.host !== 'spot' && start !== undefined && end !== undefined && start > end)
    throw refuse(-1023, 'Start time is greater than end time.');
  return { start, end };
}

/** Refuses what begins, or ends, before the wall. */
export function spanWithin(ask: Ask, wall: number): Span {
  const span = spanOf(ask);
  if (span.start !== undefined && span.start < wall) throw new Refusal(wallError('startTime'));
  if (span.end !== undefined && span.end < wall) throw new Refusal(wallError('endTime'));
  return span;
}

/** USD-M takes lower case too. */
export function symbolOf(ask: Ask): VenueSymbol {
  const name = textOf(ask, 'symbol');
  const symbol = ask.book.find(ask.host, ask.host === 'fapi' ? name.toUpperCase() : name);
  if (symbol === undefined) throw refuse(-1121, 'Invalid symbol.');
  return symbol;
}

export function pairAsked(ask: Ask): readonly [VenueSymbol, ...VenueSymbol[]] {
  const [first, ...others] = ask.book.ofPair(ask.host, textOf(ask, 'pair'));
  if (first === undefined) throw refuse(ask.host === 'dapi' ? -4087 : -4144, 'Invalid pair.');
  return [first, ...others];
}
