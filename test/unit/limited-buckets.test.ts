import { expect, it } from 'vitest';
import { limitedBuckets } from '../../src/http/exchange-hosts.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';

it('--request-interval and --requests-per-minute hold together in each bucket', () => {
  const buckets = limitedBuckets(loadBinance(), { requestIntervalMs: 400, requestsPerMinute: 60 });
  const paces = [
    { requests: 1, spanMs: 400 },
    { requests: 60, spanMs: 60_000 },
  ];
  for (const name of ['archive', 'listing', 'futuresData']) expect(buckets[name]?.paces).toEqual(paces);
});
