import { rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { serveArchive } from '../../../src/verbs/serve/serve.js';
import { digest, errorOf, folderWith, list, raw, removeFolders, serve } from '../../helpers/served-folder.js';

const SERIES = 'data/spot/daily/klines/BTCUSDT/1m';
const KEY = `${SERIES}/BTCUSDT-1m-2024-01-01.zip`;
const CONTENT = Buffer.from('PK\u0003\u0004 not really a zip, but the server does not look');

afterAll(removeFolders);

describe('an object', () => {
  const chinese = 'data/futures/um/daily/klines/币安人生USDT/1m/币安人生USDT-1m-2026-01-01.zip';
  const etag = `"${digest('md5', CONTENT)}"`;
  let server: Awaited<ReturnType<typeof serveArchive>>;
  let folder: string;

  beforeAll(async () => {
    folder = folderWith({
      [KEY]: CONTENT,
      [chinese]: 'chinese',
      'data/empty.zip': '',
      'secret.txt': 'secret',
      'other/secret.zip': 'secret',
    });
    symlinkSync(join(folder, 'secret.txt'), join(folder, 'data/out.zip'));
    symlinkSync('/etc', join(folder, 'data/etc'));
    server = await serve(folder);
  });
  afterAll(() => server.close());

  function get(headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
    return fetch(`${server.url}/${KEY}`, { method, headers });
  }

  it('is sent whole with its validators, in both URL styles', async () => {
    for (const base of [server.url, `${server.url}/data.binance.vision`]) {
      const response = await fetch(`${base}/${KEY}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('etag')).toBe(etag);
      expect(response.headers.get('content-type')).toBe('application/zip');
      expect(response.headers.get('accept-ranges')).toBe('bytes');
      expect(response.headers.get('content-length')).toBe(String(CONTENT.length));
      expect(Buffer.from(await response.arrayBuffer())).toEqual(CONTENT);
    }
  });

  it('is sent without a body for HEAD, which ignores a range', async () => {
    const response = await get({ range: 'bytes=0-1' }, 'HEAD');
    expect([response.status, response.headers.get('content-length')]).toEqual([200, String(CONTENT.length)]);
    expect(await response.text()).toBe('');
  });

  it.each([
    ['bytes=0-3', 0, 3],
    ['bytes=5-', 5, CONTENT.length - 1],
    ['bytes=-4', CONTENT.length - 4, CONTENT.length - 1],
    ['bytes=2-99999', 2, CONTENT.length - 1],
    ['bytes=-99999', 0, CONTENT.length - 1],
  ])('gives the part %s with 206', async (range, first, last) => {
    const response = await get({ range });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${first}-${last}/${CONTENT.length}`);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(CONTENT.subarray(first, last + 1));
  });

  it.each(['bytes=99999-', 'bytes=-0'])('refuses the part %s with 416', async (range) => {
    const response = await get({ range });
    expect([response.status, response.headers.get('content-range')]).toEqual([
      416,
      `bytes */${CONTENT.length}`,
    ]);
    expect(await response.text()).toContain('<Code>InvalidRange</Code>');
  });

  it.each(['bytes=0-1,3-4', 'bytes=5-2', 'lines=0-1', 'bytes=-', 'bytes=a-b'])(
    'ignores the range %s',
    async (range) => {
      expect((await get({ range })).status).toBe(200);
    },
  );

  it('is sent in part with If-Range only when the ETag is the same', async () => {
    expect((await get({ range: 'bytes=4-', 'if-range': etag })).status).toBe(206);
    const changed = await get({ range: 'bytes=4-', 'if-range': '"0123"' });
    expect([changed.status, (await changed.arrayBuffer()).byteLength]).toEqual([200, CONTENT.length]);
  });

  it('is found under a non-ASCII key', async () => {
    expect(await (await fetch(`${server.url}/${chinese}`)).text()).toBe('chinese');
    const { CommonPrefixes } = await list(server.url, {
      prefix: 'data/futures/um/daily/klines/',
      delimiter: '/',
    });
    expect(CommonPrefixes).toEqual([{ Prefix: 'data/futures/um/daily/klines/币安人生USDT/' }]);
  });

  it('may be empty', async () => {
    const response = await fetch(`${server.url}/data/empty.zip`);
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([
      200,
      '0',
      '',
    ]);
  });

  it('has a generated sidecar unless a sidecar file exists', async () => {
    const url = `${server.url}/${KEY}.CHECKSUM`;
    const line = `${digest('sha256', CONTENT)}  BTCUSDT-1m-2024-01-01.zip\n`;
    const response = await fetch(url);
    expect([response.status, await response.text()]).toEqual([200, line]);
    expect(response.headers.get('etag')).toBe(`"${digest('md5', line)}"`);
    const part = await fetch(url, { headers: { range: 'bytes=64-65' } });
    expect([part.status, await part.text()]).toEqual([206, '  ']);
    writeFileSync(join(folder, `${KEY}.CHECKSUM`), 'wrong');
    expect(await (await fetch(url)).text()).toBe('wrong');
    expect((await raw(server.url, `/${KEY}.CHECKSUM.CHECKSUM`)).status).toBe(404);
    rmSync(join(folder, `${KEY}.CHECKSUM`));
  });

  it('changes its ETag and sidecar when the file is replaced', async () => {
    const key = 'data/changing.zip';
    for (const content of ['one', 'two']) {
      writeFileSync(join(folder, key), content);
      utimesSync(join(folder, key), 1_700_000_000, content === 'one' ? 1_700_000_000 : 1_700_000_001);
      expect((await fetch(`${server.url}/${key}`)).headers.get('etag')).toBe(`"${digest('md5', content)}"`);
      expect(await (await fetch(`${server.url}/${key}.CHECKSUM`)).text()).toContain(
        digest('sha256', content),
      );
    }
  });

  it('is streamed with the ETag of a multipart upload when large, and the server survives aborted requests', async () => {
    const size = 40 * 1024 * 1024;
    writeFileSync(join(folder, 'data/large.zip'), '');
    truncateSync(join(folder, 'data/large.zip'), size);
    for (let i = 0; i < 3; i += 1) {
      const leaving = new AbortController();
      const response = await fetch(`${server.url}/data/large.zip`, { signal: leaving.signal });
      expect(response.headers.get('etag')).toMatch(/^"[0-9a-f]{32}-5"$/);
      leaving.abort();
    }
    const whole = await fetch(`${server.url}/data/large.zip`);
    expect((await whole.arrayBuffer()).byteLength).toBe(size);
    const sidecar = await (await fetch(`${server.url}/data/large.zip.CHECKSUM`)).text();
    expect(sidecar).toBe(`${digest('sha256', Buffer.alloc(size))}  large.zip\n`);
    const listed = (await list(server.url, { prefix: 'data/large.zip.C' })).Contents?.[0];
    expect(listed?.Size).toBe(String(sidecar.length));
  });

  it.each([
    `/${SERIES}/nothing.zip`,
    `/${SERIES}`,
    `/${SERIES}/`,
    '/',
    `/${KEY}/`,
    '/data',
    '/secret.txt',
    '/other/secret.zip',
  ])('does not exist at %s: 404 with the error document', async (target) => {
    const { status, body } = await raw(server.url, target);
    expect(status).toBe(404);
    expect(errorOf(body)).toMatchObject({ Code: 'NoSuchKey', Key: target.slice(1) });
  });

  it.each([
    ['/data/../secret.txt', 404],
    ['/data/%2e%2e/secret.txt', 404],
    ['/data/..%2fsecret.txt', 404],
    ['/data.binance.vision/data/../secret.txt', 404],
    ['/data.binance.vision/../secret.txt', 404],
    ['/data/..%5csecret.txt', 404],
    ['//etc/passwd', 404],
    ['/data//etc/passwd', 404],
    ['/%2fetc/passwd', 404],
    ['/data/out.zip', 404],
    ['/data/out.zip.CHECKSUM', 404],
    ['/data/etc/passwd', 404],
    [`/${KEY}%00`, 404],
    [`/data/${'x'.repeat(5000)}`, 404],
    ['/data/%zz.zip', 400],
    ['/data/%ff.zip', 400],
    ['/data/%c0%ae%c0%ae/secret.txt', 400],
    ['http://elsewhere/data/x.zip', 400],
  ])('is never read from outside the folder: %s gives %i', async (target, expected) => {
    const { status, body } = await raw(server.url, target);
    expect(status).toBe(expected);
    expect(body).toContain(expected === 400 ? '<Code>InvalidURI</Code>' : '<Code>NoSuchKey</Code>');
  });

  it.each(['PUT', 'POST', 'DELETE', 'OPTIONS'])('refuses %s with 405', async (method) => {
    const { status, body } = await raw(server.url, `/${KEY}`, method);
    expect(status).toBe(405);
    expect(body).toContain('<Code>MethodNotAllowed</Code>');
  });
});

describe('starting the server', () => {
  it('gives a usage error for a port in use', async () => {
    const folder = folderWith({});
    const first = await serve(folder);
    const second = serveArchive({
      directory: folder,
      host: '127.0.0.1',
      port: Number(new URL(first.url).port),
    });
    await expect(second).rejects.toMatchObject({ code: 'usage' });
    await first.close();
  });
});

describe('a file that is repeatedly replaced by a symbolic link out of the folder', () => {
  const secret = Buffer.from('PK\u0003\u0004 this is not in the folder');
  const content = Buffer.alloc(secret.length, 'x');

  it.each(['the file', 'its folder'])('never exposes the target of the link: %s', async (what) => {
    const folder = folderWith({ [KEY]: content });
    const outside = folderWith({ 'BTCUSDT-1m-2024-01-01.zip': secret });
    const place = what === 'the file' ? KEY : SERIES;
    const target = what === 'the file' ? join(outside, 'BTCUSDT-1m-2024-01-01.zip') : outside;
    const flipping = flip(folder, place, target);
    const server = await serve(folder);
    const bodies = new Set<string>();
    const digests = new Set<string | null>();
    for (let request = 0; request < 200; request += 1) {
      const response = await fetch(`${server.url}/${KEY}`).catch(() => undefined);
      const body = await response?.text().catch(() => undefined);
      if (response?.status !== 200 || body === undefined) continue;
      bodies.add(body);
      digests.add(response.headers.get('etag'));
    }
    await flipping.terminate();
    await server.close();
    expect([...bodies]).toEqual([content.toString()]);
    expect([...digests]).toEqual([`"${digest('md5', content)}"`]);
  });
});

/** Replaces a file or folder by a link and restores it, in an endless loop. */
function flip(folder: string, place: string, target: string): Worker {
  symlinkSync(target, join(folder, 'link'));
  const names = { path: join(folder, place), link: join(folder, 'link'), aside: join(folder, 'aside') };
  const code = `
    const { renameSync } = require('node:fs');
    const { path, link, aside } = require('node:worker_threads').workerData;
    for (;;) {
      renameSync(path, aside);
      renameSync(link, path);
      renameSync(path, link);
      renameSync(aside, path);
    }`;
  return new Worker(code, { eval: true, workerData: names });
}
