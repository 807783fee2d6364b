/** A period of a universe as a fragment of a configuration of freqtrade: the StaticPairList reads the pairs of `exchange.pair_whitelist`. */
import type { Market } from '../model/task.js';
import { pairOf } from '../source/pairs.js';
import type { Venue } from '../source/venue.js';

/** `BTC/USDT`, `BTC/USDT:USDT`, `BTC/USD:BTC`, `BTC/USDT:USDT-240329`. Undefined for a symbol whose assets are not known. */
export function pairName(venue: Venue, market: Market, symbol: string): string | undefined {
  const pair = pairOf(venue, market, symbol);
  if (pair === undefined) return undefined;
  const { base, quote, settle, expiry } = pair;
  return `${base}/${quote}${settle === undefined ? '' : `:${settle}`}${expiry === undefined ? '' : `-${expiry}`}`;
}

const METHOD = 'StaticPairList';

export function pairlistText(pairs: readonly string[]): string {
  const content = { exchange: { pair_whitelist: pairs }, pairlists: [{ method: METHOD }] };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

/** Whether a text has the fields of `pairlistText` and no others. */
export function isPairlist(text: string): boolean {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return false;
  }
  const { exchange, pairlists, ...others } = fieldsOf(content);
  const { pair_whitelist: pairs, ...more } = fieldsOf(exchange);
  return (
    Object.keys(others).length === 0 &&
    Object.keys(more).length === 0 &&
    Array.isArray(pairs) &&
    JSON.stringify(pairlists) === JSON.stringify([{ method: METHOD }])
  );
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
