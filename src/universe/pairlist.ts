/** A period of a universe as a fragment of a configuration of freqtrade: the StaticPairList reads the pairs of `exchange.pair_whitelist`. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Market } from '../model/task.js';
import { pairOf } from '../source/pairs.js';
import type { Venue } from '../source/venue.js';
import { fieldsOf } from '../text/json.js';

/** `BTC/USDT`, `BTC/USDT:USDT`, `BTC/USD:BTC`, `BTC/USDT:USDT-240329`. Undefined for a symbol whose assets are not known. */
export function pairName(venue: Venue, market: Market, symbol: string): string | undefined {
  const pair = pairOf(venue, market, symbol);
  if (pair === undefined) return undefined;
  const { base, quote, settle, expiry } = pair;
  return `${base}/${quote}${settle === undefined ? '' : `:${settle}`}${expiry === undefined ? '' : `-${expiry}`}`;
}

const MARK = 'cryptodl universe';

/** The mark and the digest tell later runs that the file may be replaced. freqtrade ignores both. */
export function pairlistText(pairs: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(pairs)).digest('hex');
  const content = {
    made_by: MARK,
    digest,
    exchange: { pair_whitelist: pairs },
    pairlists: [{ method: 'StaticPairList' }],
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

/** Whether a file has the text of `pairlistText` without any change. */
export async function isOwnPairlist(path: string): Promise<boolean> {
  try {
    const text = await readFile(path, 'utf8');
    const { pair_whitelist: pairs } = fieldsOf(fieldsOf(JSON.parse(text))['exchange']);
    return Array.isArray(pairs) && text === pairlistText(pairs.map(String));
  } catch {
    return false;
  }
}
