/** Base, quote and settle asset of a symbol, by the quote assets of its market. */
import type { Market } from '../model/task.js';
import type { ExchangeSpec } from './exchange-spec.js';

export interface Assets {
  readonly base: string;
  readonly quote: string;
}

export interface Pair extends Assets {
  /** The asset of margins and profits; undefined for spot. */
  readonly settle?: string;
  /** `240329` for a contract that ends; undefined for spot and perpetual contracts. */
  readonly expiry?: string;
}

/**
 * The pair of a symbol: `BTCUSDT`, `BTCUSD_PERP`, `BTCUSDT_240329`. Undefined for the names of settled contracts (`ICPUSDT_SETTLED`), and
 * for a symbol without a known quote asset. `known` has assets from elsewhere, which are preferred.
 */
export function pairOf(
  { markets }: Pick<ExchangeSpec, 'markets'>,
  market: Market,
  symbol: string,
  known: ReadonlyMap<string, Assets> = new Map(),
): Pair | undefined {
  const facts = Object.hasOwn(markets, market) ? markets[market] : undefined;
  const [, name, expiry] = /^(.+?)(?:_PERP|_(\d{6}))?$/.exec(symbol) ?? [];
  if (facts === undefined || name === undefined || name.includes('_') || isSettled(name)) return undefined;
  const assets = known.get(symbol) ?? assetsOf(facts, name);
  if (assets === undefined) return undefined;
  const { base, quote } = assets;
  return {
    base,
    quote,
    ...(facts.settle === undefined ? {} : { settle: facts.settle === 'base' ? base : quote }),
    ...(expiry === undefined ? {} : { expiry }),
  };
}

/** `BTC/USDT`, `BTC/USDT:USDT`, `BTC/USD:BTC`, `BTC/USDT:USDT-240329`: the names of ccxt and freqtrade. */
export const pairName = ({ base, quote, settle, expiry }: Pair): string =>
  `${base}/${quote}${settle === undefined ? '' : `:${settle}`}${expiry === undefined ? '' : `-${expiry}`}`;

/** Whether the name is that of a settled contract: `ICPUSDT_SETTLED`, `CVCUSDTSETTLED1`. It has no pair. */
export const isSettled = (symbol: string): boolean => /SETTLED\d*$/.test(symbol);

function assetsOf(
  { quotes = [], quoteOf = {} }: Pick<ExchangeSpec['markets'][string], 'quotes' | 'quoteOf'>,
  name: string,
): Assets | undefined {
  const fitting = quotes.filter((quote) => name.endsWith(quote) && name.length > quote.length);
  const [longest] = fitting.sort((a, b) => b.length - a.length);
  const quote = Object.hasOwn(quoteOf, name) ? quoteOf[name] : longest;
  return quote === undefined ? undefined : { base: name.slice(0, -quote.length), quote };
}
