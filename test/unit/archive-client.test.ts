/** Requests to an archive besides its objects. */
import { expect, it } from 'vitest';
import type { Fetch } from '../../src/http/fetch.js';
import { Failover } from '../../src/http/retry/fallback-host.js';
import { resolveOptions } from '../../src/options/resolve.js';
import { archiveAnswers, getListing } from '../../src/source/archive-client.js';
import { loadBinance } from '../../src/source/binance/binance.js';

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
  const { options } = resolveOptions('vision', []);
  const { signal } = new AbortController();
  const asks = { fetch, options, archive, failover: new Failover(true), signal };
  expect(await archiveAnswers(asks, KEY)).toBe(true);
  expect(paths).toEqual([`/${asked}`]);
});

it.each([
  ['an equal page without an ETag is not read again', 'sha256:d1', undefined, undefined, 0],
  ['a changed page without an ETag is read', 'sha256:d0', undefined, undefined, 1],
  ['a page that no longer has an ETag is read', '"e"', undefined, '"e"', 1],
  ['the ETag of a server stays', '"e"', '"f"', '"e"', 1],
])('%s', async (_, held, etag, sentEtag, reads) => {
  const PAGE = { objects: [], prefixes: [], truncated: false };
  const { archive } = loadBinance();
  const sent: unknown[] = [];
  const fetch: Fetch = (request) => {
    sent.push(request.heldEtag);
    const response = {
      status: 200,
      headers: etag === undefined ? {} : { etag },
      body: { kind: 'memory', bytes: Buffer.from('<page/>') },
      sha256: 'd1',
    } as const;
    request.expect?.check?.(response);
    return Promise.resolve(response);
  };
  let parsed = 0;
  const parse = (): typeof PAGE => {
    parsed += 1;
    return PAGE;
  };
  const access = {
    fetch,
    options: resolveOptions('vision', []).options,
    archive: { ...archive, listing: { ...archive.listing, parse } },
    failover: new Failover(true),
    signal: new AbortController().signal,
  };
  const page = await getListing(access, 'http://127.0.0.1', '/?prefix=d/', held);
  expect(sent).toEqual([sentEtag]);
  expect(parsed).toBe(reads);
  expect(page).toEqual(reads === 0 ? 'unchanged' : { ...PAGE, pageEtag: etag ?? 'sha256:d1' });
});
