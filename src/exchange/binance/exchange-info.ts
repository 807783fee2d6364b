/** `exchangeInfo` of a REST host: its symbols and request limits. Statuses and contract types are free text, because Binance adds new ones. */
import { CryptodlError } from '../../model/errors.js';
import type { Market } from '../../model/task.js';
import { DURATION_MS } from '../../model/units.js';
import type { Assets } from '../pairs.js';
import type { TradedSymbol } from '../rest-api.js';
import type { RestClient, RestRequest } from './rest-client.js';
import { fieldsOf, parseJson } from '../../text/json.js';

interface RequestLimit {
  /** Weight per window. Windows follow the clock of the host. */
  readonly limit: number;
  readonly windowMs: number;
}

export interface ExchangeInfo {
  readonly symbols: readonly TradedSymbol[];
  readonly weight: RequestLimit | undefined;
}

const REQUESTS: Readonly<Partial<Record<Market, RestRequest>>> = {
  spot: { host: 'spot', path: '/api/v3/exchangeInfo', query: {}, bucket: 'spot', weight: 20 },
  um: { host: 'fapi', path: '/fapi/v1/exchangeInfo', query: {}, bucket: 'futures', weight: 1 },
  cm: { host: 'dapi', path: '/dapi/v1/exchangeInfo', query: {}, bucket: 'futures', weight: 1 },
};

/** Rejects with `location-restricted` if the host does not serve this location. */
export async function exchangeInfo(client: RestClient, market: Market): Promise<ExchangeInfo> {
  const request = REQUESTS[market];
  if (request === undefined) throw new CryptodlError('bug', `REST has no ${market}`);
  return client.get(request, readExchangeInfo);
}

/** Reads a cached answer; undefined for content without symbols. Its entries are not checked, because the program wrote them, and the file has a checksum. */
export function parseHeldInfo(content: unknown): ExchangeInfo | undefined {
  return Array.isArray(fieldsOf(content)['symbols']) ? (content as ExchangeInfo) : undefined;
}

/** The bucket to which the weight limit of a market's host applies; empty for a market without REST. */
export const weightBucket = (market: Market): string => REQUESTS[market]?.bucket ?? '';

/** Reads an answer. Throws `answer-malformed` without a list of symbols, or for a symbol without a name. */
export function readExchangeInfo(content: unknown): ExchangeInfo {
  const { symbols, rateLimits } = fieldsOf(content);
  if (!Array.isArray(symbols))
    throw new CryptodlError('answer-malformed', 'exchangeInfo has no list of symbols');
  return {
    symbols: symbols.map((entry: unknown) => {
      const { symbol, status, contractStatus, contractType } = fieldsOf(entry);
      if (typeof symbol !== 'string' || symbol === '')
        throw new CryptodlError('answer-malformed', 'exchangeInfo has a symbol without a name');
      return { symbol, status: textOf(status ?? contractStatus), contractType: textOf(contractType) };
    }),
    weight: Array.isArray(rateLimits) ? weightLimit(rateLimits) : undefined,
  };
}

function weightLimit(limits: readonly unknown[]): RequestLimit | undefined {
  for (const entry of limits) {
    const { rateLimitType, interval, intervalNum, limit } = fieldsOf(entry);
    // SECOND, MINUTE, HOUR or DAY.
    const unitMs = DURATION_MS[textOf(interval).slice(0, 1).toLowerCase()];
    if (rateLimitType !== 'REQUEST_WEIGHT' || unitMs === undefined) continue;
    if (typeof limit !== 'number' || typeof intervalNum !== 'number' || limit < 1 || intervalNum < 1)
      continue;
    return { limit, windowMs: unitMs * intervalNum };
  }
  return undefined;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

// Symbols of contracts, and their pairs.

/** `BTCUSD_PERP` and `BTCUSD_261225` are contracts of BTCUSD. */
export const contractPair = (symbol: string): string => symbol.split('_')[0] ?? symbol;

export function isPerpetual(market: Market, symbol: string): boolean {
  return market === 'cm' ? symbol.endsWith('_PERP') : !symbol.includes('_');
}

/** For `RestApi.assetsIn`. */
export function parseAssets(text: string): ReadonlyMap<string, Assets> | undefined {
  const { symbols } = fieldsOf(parseJson(text));
  if (!Array.isArray(symbols)) return undefined;
  const assets = new Map<string, Assets>();
  for (const entry of symbols as unknown[]) {
    const { symbol, baseAsset, quoteAsset } = fieldsOf(entry);
    if ([symbol, baseAsset, quoteAsset].every((name) => typeof name === 'string' && name !== ''))
      assets.set(symbol as string, { base: baseAsset as string, quote: quoteAsset as string });
  }
  return assets.size === 0 ? undefined : assets;
}
