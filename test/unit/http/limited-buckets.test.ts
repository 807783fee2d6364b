import { expect, it } from 'vitest';
import { limitedBuckets } from '../../../src/http/throttle/exchange-hosts.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

it('limits of buckets hold together with --request-interval and --requests-per-minute', () => {
  const limits = [
    { text: 'archive=3/m', bucket: 'archive', permits: 3, windowMs: 60_000 },
    { text: 'futuresData=5/5m', bucket: 'futuresData', permits: 5, windowMs: 300_000 },
  ];
  const own = { requestIntervalMs: 400, requestsPerMinute: 60 };
  const interval = { requests: 1, spanMs: 400 };
  const minute = { requests: 60, spanMs: 60_000 };
  const buckets = limitedBuckets(loadBinance(), { limits, ...own });
  expect(buckets['archive']?.paces).toEqual([interval, minute, { requests: 3, spanMs: 60_000 }]);
  expect(buckets['futuresData']).toMatchObject({ permits: 5, isChosen: true, paces: [interval, minute] });
  expect(buckets['listing']?.paces).toEqual([interval, minute]);
});
