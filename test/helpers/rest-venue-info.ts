/** What a REST venue says of itself: its symbols, its limits, its funding intervals. */
import { json, refuse } from './rest-venue-answers.js';
import type { Ask } from './rest-venue-ask.js';
import { hashText } from './rest-venue-rows.js';
import type { Host, VenueAnswer, VenueSymbol } from './rest-venue-types.js';
import { deliveryOf, firstOf, pairOf } from './rest-venue-types.js';

/** The day on which what never expires expires. */
const NEVER = 4_133_404_800_000;
const QUOTES = ['USDT', 'USDC', 'FDUSD', 'TUSD', 'BUSD', 'BTC', 'ETH', 'BNB', 'TRY', 'EUR', 'USD'];

/** `weight` is what the host grants in a minute, `raw` the requests of spot in five. */
export function exchangeInfo(ask: Ask, weight: number, raw: number): VenueAnswer {
  const { host, now } = ask;
  const rateLimits = [limitOfType('REQUEST_WEIGHT', 'MINUTE', 1, weight), ...otherLimits(host, raw)];
  const kind = { fapi: { futuresType: 'U_MARGINED' }, dapi: {}, spot: {} }[host];
  const assets = host === 'fapi' ? { assets: [{ asset: 'USDT', marginAvailable: true }] } : {};
  return json(
    JSON.stringify({
      timezone: 'UTC',
      serverTime: now,
      ...kind,
      rateLimits,
      exchangeFilters: [],
      ...assets,
      symbols: wanted(ask).map(described),
    }),
  );
}

function otherLimits(host: Host, raw: number): object[] {
  const orders = limitOfType('ORDERS', 'MINUTE', 1, 1200);
  if (host === 'dapi') return [orders];
  if (host === 'fapi') return [orders, limitOfType('ORDERS', 'SECOND', 10, 300)];
  return [limitOfType('ORDERS', 'SECOND', 10, 100), limitOfType('RAW_REQUESTS', 'MINUTE', 5, raw)];
}

function limitOfType(rateLimitType: string, interval: string, intervalNum: number, limit: number): object {
  return { rateLimitType, interval, intervalNum, limit };
}

/** Spot can be asked for some only. */
function wanted({ host, query, now, book }: Ask): VenueSymbol[] {
  const listed = book.listed(host, now);
  const one = query.get('symbol');
  const some = query.get('symbols');
  if (host !== 'spot' || (one === null && some === null)) return listed;
  const names = one === null ? (JSON.parse(some ?? '[]') as string[]) : [one];
  return names.map((name) => {
    const symbol = listed.find((candidate) => candidate.symbol === name);
    if (symbol === undefined) throw refuse(-1121, 'Invalid symbol.');
    return symbol;
  });
}

function described(symbol: VenueSymbol): object {
  const { host, status = 'TRADING', contractType = 'PERPETUAL' } = symbol;
  const pair = pairOf(symbol);
  const quote = QUOTES.find((name) => pair.endsWith(name) && pair !== name) ?? '';
  const base = pair.slice(0, pair.length - quote.length);
  const assets = { baseAsset: base, quoteAsset: quote };
  if (host === 'spot')
    return {
      symbol: symbol.symbol,
      status,
      ...assets,
      isSpotTradingAllowed: status === 'TRADING',
      filters: [],
      permissions: [],
    };
  const isCoin = host === 'dapi';
  return {
    symbol: symbol.symbol,
    pair,
    contractType,
    deliveryDate: deliveryOf(symbol) ?? NEVER,
    onboardDate: firstOf(symbol),
    ...(isCoin ? { contractStatus: status, contractSize: base === 'BTC' ? 100 : 10 } : { status }),
    marginAsset: isCoin ? base : quote,
    ...assets,
    ...(isCoin ? { equalQtyPrecision: 4 } : {}),
    underlyingType: contractType === 'TRADIFI_PERPETUAL' ? 'COMMODITY' : 'COIN',
    underlyingSubType: [],
    filters: [],
  };
}

/** Some of those that pay every 8 hours are left out. Asked of USD-M it tells of COIN-M as well. */
export function fundingInfo({ host, now, book }: Ask): VenueAnswer {
  const hosts: readonly Host[] = host === 'fapi' ? ['fapi', 'dapi'] : ['dapi'];
  const rows = hosts
    .flatMap((one) => book.listed(one, now))
    .filter((symbol) => deliveryOf(symbol) === undefined)
    .filter(({ symbol, fundingHours = 8 }) => fundingHours !== 8 || hashText(symbol) % 2 === 0)
    .map(({ symbol, fundingHours = 8 }) => {
      const hash = hashText(symbol);
      const updateTime = hash % 5 === 0 ? null : 1_760_955_417_544 + (hash % 1000);
      return {
        symbol,
        adjustedFundingRateCap: '0.02000000',
        adjustedFundingRateFloor: '-0.02000000',
        fundingIntervalHours: fundingHours,
        disclaimer: hash % 3 === 0,
        ...(host === 'fapi' ? { updateTime } : {}),
      };
    });
  return json(JSON.stringify(rows));
}
