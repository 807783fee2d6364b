import { ZIP as ZIP_FORMAT } from '../../../src/exchange/zip/unzip.js';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeZip } from '../../../scripts/make-zip.js';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Expectation, Fetch, FetchRequest, FetchResponse } from '../../../src/model/fetch.js';
import { md5OfEtag, verifyLayer } from '../../../src/http/transport/verify-body.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';
import { answer, context, refusal, REQUEST } from '../../helpers/requests.js';

const folder = scratchFolder();
const ZIP = makeZip([{ name: 'a.csv', data: '1704067200000,42283.58\n'.repeat(50) }]);
const HTML = Buffer.from('<html><title>Error</title></html>');
const SHA256 = createHash('sha256').update(ZIP).digest('hex');
const MD5 = createHash('md5').update(ZIP).digest('hex');
const OTHER = '0'.repeat(64);

type Kind = 'memory' | 'file';

function responseOf(bytes: Buffer, kind: Kind): FetchResponse {
  if (kind === 'memory') return answer(bytes);
  const path = join(folder, 'body.zip');
  writeFileSync(path, bytes);
  return answer(bytes, 200, { kind, path, size: bytes.length });
}

function check(response: FetchResponse, known: Expectation = {}, more: Partial<FetchRequest> = {}) {
  const next: Fetch = () => Promise.resolve(response);
  return verifyLayer(next)({ ...REQUEST, ...more, expect: { format: ZIP_FORMAT, ...known } }, context());
}

const published = (digest: string | undefined) => (): Promise<string | undefined> => Promise.resolve(digest);

describe.each<Kind>(['memory', 'file'])('verify, with the body in a %s', (kind) => {
  const good = responseOf(ZIP, kind);

  it('passes a body with the digest of its sidecar, at any size in the listing', async () => {
    expect(await check(responseOf(ZIP, kind), { bytes: 1, sha256: published(SHA256) })).toEqual(good);
  });

  it('passes a body with the digest of its ETag, without a request for the sidecar', async () => {
    expect(await check(responseOf(ZIP, kind), { md5: MD5 })).toEqual(good);
  });

  it('refuses a body that its sidecar contradicts, with both digests and the bytes as evidence', async () => {
    const error = await refusal(check(responseOf(ZIP, kind), { sha256: published(OTHER) }));
    expect(error.code).toBe('checksum-mismatch');
    expect(error.message).toContain(SHA256);
    expect(error.message).toContain(OTHER);
    expect(error.evidence).toEqual(good);
  });

  const NONE = '0'.repeat(32);
  const withEtag = (etag: string): FetchResponse => ({ ...responseOf(ZIP, kind), headers: { etag } });

  it('refuses a body that its ETag contradicts, as a bad transfer', async () => {
    const error = await refusal(check(responseOf(ZIP, kind), { md5: NONE }));
    expect(error.code).toBe('body-damaged');
    expect(error.message).toContain(MD5);
    const named = await refusal(check(withEtag(`"${NONE}"`), { md5: MD5, sha256: published(OTHER) }));
    expect(named.code).toBe('body-damaged');
  });

  it('refuses another revision than the listed one, unless its own sidecar is there already', async () => {
    for (const known of [{ md5: NONE }, { md5: NONE, sha256: published(OTHER) }]) {
      const error = await refusal(check(withEtag(`"${MD5}"`), known));
      expect(error.code).toBe('checksum-mismatch');
    }
    const replaced = { md5: NONE, sha256: published(SHA256) };
    expect((await check(withEtag(`"${MD5}"`), replaced)).sha256).toBe(SHA256);
  });

  it('says that the sidecar is stale when size and ETag are those of the listing', async () => {
    const listed = { md5: MD5, bytes: ZIP.length, sha256: published(OTHER) };
    for (const response of [responseOf(ZIP, kind), withEtag(`"${MD5}"`)]) {
      const error = await refusal(check(response, listed));
      expect(error.code).toBe('sidecar-stale');
      expect(error.evidence?.body).toEqual(response.body);
    }
    const other = await refusal(check(responseOf(ZIP, kind), { ...listed, bytes: ZIP.length + 1 }));
    expect(other.code).toBe('checksum-mismatch');
  });

  it('compares the MD5 where the ETag of the listing is to decide', async () => {
    const bare = responseOf(ZIP, kind);
    const decides = { bytes: 1, sha256: published(undefined) };
    expect(await check(bare, { ...decides, md5: MD5 })).toEqual(bare);
    const error = await refusal(check(bare, { ...decides, md5: NONE }));
    expect([error.code, error.message]).toEqual([
      'body-damaged',
      `MD5 is ${MD5}, the listing's ETag says ${NONE}; it is not the listed object`,
    ]);
  });

  it('names the contradicted source of a damaged body: the listing, or its own ETag', async () => {
    const listed = { md5: NONE, sha256: published(OTHER) };
    const differs = `SHA-256 is ${SHA256}, the sidecar says ${OTHER}`;
    for (const response of [responseOf(ZIP, kind), withEtag(`"${NONE}"`)])
      expect((await refusal(check(response, listed))).message).toBe(
        `${differs}; it is not the listed object`,
      );
    const own = '1'.repeat(32);
    expect((await refusal(check(withEtag(`"${own}"`), listed))).message).toBe(
      `${differs}; its own ETag says ${own}`,
    );
  });

  it('falls back on the size from the listing when no digest is published', async () => {
    const none = { sha256: published(undefined) };
    const { length } = ZIP;
    expect(await check(responseOf(ZIP, kind), { ...none, bytes: length })).toEqual(good);
    const error = await refusal(check(responseOf(ZIP, kind), { ...none, bytes: length + 1 }));
    expect(error.code).toBe('length-mismatch');
    expect(error.message).toContain(`${length} bytes`);
    expect(error.message).toContain(String(length + 1));
  });

  it('passes a zip of which nothing is known', async () => {
    expect(await check(responseOf(ZIP, kind))).toEqual(good);
  });

  it('refuses a page with status 200, before it minds digests, and shows how it begins', async () => {
    const error = await refusal(check(responseOf(HTML, kind), { sha256: published(SHA256) }));
    expect(error.code).toBe('not-a-zip');
    expect(error.message).toBe('not a zip: it starts with "<html><title>Error</title></html>"');
    expect(error.evidence?.status).toBe(200);
    const long = await refusal(check(responseOf(Buffer.alloc(500, 'x'), kind)));
    expect(long.message).toBe(`not a zip: it starts with "${'x'.repeat(40)}"`);
  });

  it('does not take the end of a zip within a zip for the end of the outer one', async () => {
    const inner = makeZip([{ name: 'b.csv', data: '1\n' }]);
    const data = Buffer.concat([inner, Buffer.alloc(200_000, '1')]);
    const outer = makeZip([{ name: 'a.zip', data, method: 0 }]);
    const cut = responseOf(outer.subarray(0, 150_000), kind);
    const error = await refusal(check(cut, { sha256: published(OTHER) }));
    expect(error.code).toBe('zip-truncated');
  });

  it('finds the end of a zip behind the longest comment', async () => {
    const long = makeZip([{ name: 'a.csv', data: '1\n' }], { comment: 'x'.repeat(65_535) });
    const error = await refusal(check(responseOf(long, kind), { sha256: published(OTHER) }));
    expect(error.code).toBe('checksum-mismatch');
  });
});

describe('verify, with a large body in a file', () => {
  const large = makeZip([{ name: 'a.csv', data: Buffer.alloc(200_000, '1'), method: 0 }]);

  it('finds its end where it is', async () => {
    const contradicted = { sha256: published(OTHER) };
    expect((await refusal(check(responseOf(large, 'file'), contradicted))).code).toBe('checksum-mismatch');
    const cut = responseOf(large.subarray(0, 150_000), 'file');
    expect((await refusal(check(cut, contradicted))).code).toBe('zip-truncated');
  });

  it.runIf(process.platform === 'linux')('does not keep it open, passed or refused', async () => {
    await check(responseOf(large, 'file'));
    await refusal(check(responseOf(large, 'file'), { sha256: published(OTHER) }));
    expect(openFiles(folder)).toEqual([]);
  });
});

describe('md5OfEtag', () => {
  const hex = '0123456789abcdef'.repeat(2);

  it.each([`"${hex}"`, hex, `W/"${hex}"`])('reads %s', (etag) => {
    expect(md5OfEtag(etag)).toBe(hex);
  });

  it.each([
    undefined,
    '',
    `"${hex}-12"`,
    `"${hex}0"`,
    `"x${hex}"`,
    `${hex} x`,
    `"${hex.slice(1)}"`,
    `"${hex.toUpperCase()}"`,
  ])('finds no MD5 in %s', (etag) => {
    expect(md5OfEtag(etag)).toBeUndefined();
  });
});

describe('verify', () => {
  it('accepts an empty zip, which only the unpacking can judge', async () => {
    const empty = makeZip([]);
    expect((await check(answer(empty), { bytes: empty.length })).status).toBe(200);
  });

  it('accepts any body of a 404', async () => {
    const missing = answer(HTML, 404);
    expect(await check(missing, { bytes: 5, sha256: published(SHA256) })).toEqual(missing);
  });

  it('asks for the digest past caches when the object is asked for past caches', async () => {
    const asked: boolean[] = [];
    const sha256 = (bypassCache: boolean): Promise<string> => {
      asked.push(bypassCache);
      return Promise.resolve(SHA256);
    };
    await check(answer(ZIP), { sha256 });
    await check(answer(ZIP), { sha256 }, { bypassCache: true });
    expect(asked).toEqual([false, true]);
  });

  it('asks for the digest while the object is on its way', async () => {
    const order: string[] = [];
    const next: Fetch = async () => {
      order.push('object asked');
      await Promise.resolve();
      order.push('object here');
      return answer(ZIP);
    };
    const sha256 = (): Promise<string> => {
      order.push('digest asked');
      return Promise.resolve(SHA256);
    };
    await verifyLayer(next)({ ...REQUEST, expect: { format: ZIP_FORMAT, sha256 } }, context());
    expect(order).toEqual(['digest asked', 'object asked', 'object here']);
  });

  it('fails with the failure of the object, and does not leave that of the digest unhandled', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const next: Fetch = () => Promise.reject(new CryptodlError('connection-lost', 'object'));
    const sha256 = (): Promise<string> => Promise.reject(new CryptodlError('headers-timeout', 'digest'));
    const error = await refusal(
      verifyLayer(next)({ ...REQUEST, expect: { format: ZIP_FORMAT, sha256 } }, context()),
    );
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(error.code).toBe('connection-lost');
    expect(unhandled).toEqual([]);
  });

  it('does not pass an object whose digest is not available', async () => {
    const sha256 = (): Promise<string> => Promise.reject(new CryptodlError('headers-timeout', 'digest'));
    expect((await refusal(check(answer(ZIP), { sha256 }))).code).toBe('headers-timeout');
  });
});
