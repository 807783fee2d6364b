/** Requests to an archive besides its objects. */
import { VERBS } from '../../../src/main.js';
import { expect, it } from 'vitest';
import type { Fetch } from '../../../src/model/fetch.js';
import { Failover } from '../../../src/http/throttle/failover.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import { archiveAnswers } from '../../../src/exchange/archive-client.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const KEY = 'data/spot/daily/trades/BTCUSDT/BTCUSDT-trades-2024-01-01.zip';

it.each([
  ['its sidecar', loadBinance().archive, `${KEY}.CHECKSUM`],
  ['a small object', { ...loadBinance().archive, sidecar: undefined }, loadBinance().archive.known.key],
])('whether the archive answers is asked by %s, not by an object of any size', async (_, archive, asked) => {
  const paths: string[] = [];
  const fetch: Fetch = ({ url }) => {
    paths.push(new URL(url).pathname);
    return Promise.resolve({
      status: 404,
      headers: {},
      body: { kind: 'memory', bytes: Buffer.alloc(0) },
      sha256: '',
    });
  };
  const { options } = resolveOptions(VERBS.vision, []);
  const { signal } = new AbortController();
  const asks = { fetch, options, archive, failover: new Failover(true), signal };
  expect(await archiveAnswers(asks, KEY)).toBe(true);
  expect(paths).toEqual([`/${asked}`]);
});
