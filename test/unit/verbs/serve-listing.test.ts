import { symlinkSync } from 'node:fs';
import { join } from 'node:path';

import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';

import {
  byBytes,
  digest,
  entriesOf,
  folderWith,
  list,
  raw,
  removeFolders,
  serve,
} from '../../helpers/served-folder.js';

const SERIES = 'data/spot/daily/klines/BTCUSDT/1m';
const KEY = `${SERIES}/BTCUSDT-1m-2024-01-01.zip`;
const CONTENT = Buffer.from('PK\u0003\u0004 not really a zip, but the server does not look');

afterAll(removeFolders);

// Characters on both sides of the slash, ones that XML or a URL must escape, and ones that UTF-16 sorts wrongly.
const letters = [...Array.from('aB0!-+%&<" \té币\uFFFD😀'), '&lt;'];
const name = fc
  .array(fc.constantFrom(...letters), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join(''));
const file = fc.tuple(
  fc.array(name, { maxLength: 2 }),
  name,
  fc.constantFrom('', '.zip', '.zip.CHECKSUM', 'both'),
);
const keySets = fc
  .array(
    file.map(([folders, last, suffix]) => {
      const stem = ['data', ...folders, last].join('/');
      return suffix === 'both' ? [`${stem}.zip`, `${stem}.zip.CHECKSUM`] : [stem + suffix];
    }),
    { maxLength: 25 },
  )
  .map((keys) => withoutClashes(keys.flat()));

/** A name cannot be both a file and a folder. */
function withoutClashes(keys: readonly string[]): string[] {
  const kept: string[] = [];
  for (const key of new Set(keys)) {
    if (!kept.some((other) => other.startsWith(`${key}/`) || key.startsWith(`${other}/`))) kept.push(key);
  }
  return kept;
}

function withSidecars(keys: readonly string[]): string[] {
  const sidecars = keys.filter((key) => !key.endsWith('.CHECKSUM')).map((key) => `${key}.CHECKSUM`);
  return [...new Set([...keys, ...sidecars])].sort(byBytes);
}

/** A simple model of S3's listing. */
function oracle(keys: readonly string[], prefix: string, delimiter: string, after: string): string[] {
  const entries = keys
    .filter((key) => key.startsWith(prefix))
    .map((key) => {
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      return end === -1 ? key : key.slice(0, end + 1);
    });
  return [...new Set(entries)].filter((entry) => byBytes(entry, after) > 0).sort(byBytes);
}

/** A prefix of one of the keys, or a similar text. */
const cut = fc.tuple(fc.nat(), fc.nat(), fc.constantFrom('', '', '', '/', '!', '~', '币'));

function cutOf(keys: readonly string[], [which, length, end]: readonly [number, number, string]): string {
  const key = keys[which % Math.max(keys.length, 1)] ?? '';
  const points = Array.from(key);
  return points.slice(0, length % (points.length + 1)).join('') + end;
}

const request = fc.record({
  prefix: cut,
  after: cut,
  delimiter: fc.constantFrom('', '/'),
  maxKeys: fc.constantFrom(1, 2, 3, 5, 1000),
});

type Asked = typeof request extends fc.Arbitrary<infer T> ? T : never;

/** The entries of all pages, fetched with the marker of each page. */
async function pagesOf(url: string, asked: Asked, prefix: string, after: string): Promise<string[][]> {
  const pages: string[][] = [];
  const query = { prefix, delimiter: asked.delimiter, 'max-keys': String(asked.maxKeys) };
  let marker = after;
  for (;;) {
    const page = await list(url, { ...query, marker });
    const entries = entriesOf(page);
    pages.push(entries);
    const last = page.IsTruncated === 'true' ? entries.at(-1) : undefined;
    expect(page.NextMarker).toBe(last);
    if (last === undefined) return pages;
    marker = last;
  }
}

function inPages(entries: readonly string[], size: number): string[][] {
  const count = Math.max(1, Math.ceil(entries.length / size));
  return Array.from({ length: count }, (_, i) => entries.slice(i * size, (i + 1) * size));
}

describe('the listing', () => {
  it('returns over all pages the same keys as a sorted list', async () => {
    const property = fc.asyncProperty(
      keySets,
      fc.array(request, { minLength: 1, maxLength: 5 }),
      async (files, requests) => {
        const server = await serve(folderWith(Object.fromEntries(files.map((key) => [key, key]))));
        const keys = withSidecars(files);
        for (const asked of requests) {
          const [prefix, after] = [cutOf(keys, asked.prefix), cutOf(keys, asked.after)];
          const expected = oracle(keys, prefix, asked.delimiter, after);
          expect(await pagesOf(server.url, asked, prefix, after)).toEqual(inPages(expected, asked.maxKeys));
        }
        await server.close();
      },
    );
    await fc.assert(property, { numRuns: 100 });
  });

  it('has size, quoted MD5 and time of an object and of a generated sidecar', async () => {
    const server = await serve(folderWith({ [KEY]: CONTENT }));
    const page = await list(server.url, { prefix: `${SERIES}/` });
    const bodies = [CONTENT, Buffer.from(`${digest('sha256', CONTENT)}  BTCUSDT-1m-2024-01-01.zip\n`)];
    expect(page.Contents?.map(({ Key, ETag, Size }) => [Key, ETag, Size])).toEqual([
      [KEY, `"${digest('md5', bodies[0] ?? '')}"`, String(bodies[0]?.length)],
      [`${KEY}.CHECKSUM`, `"${digest('md5', bodies[1] ?? '')}"`, String(bodies[1]?.length)],
    ]);
    for (const { Key, ETag, LastModified, Size } of page.Contents ?? []) {
      const { headers } = await fetch(`${server.url}/${Key}`, { method: 'HEAD' });
      expect(headers.get('etag')).toBe(ETag);
      expect(headers.get('content-length')).toBe(Size);
      expect(Date.parse(headers.get('last-modified') ?? '')).toBe(Date.parse(LastModified));
    }
    await server.close();
  });

  it('has at most 1000 entries per page, and none for max-keys=0', async () => {
    const keys = Array.from({ length: 600 }, (_, i) => `${SERIES}/${1000 + i}.zip`);
    const server = await serve(folderWith(Object.fromEntries(keys.map((key) => [key, '']))));
    const page = await list(server.url, { prefix: '', 'max-keys': '5000' });
    expect([page.Contents?.length, page.MaxKeys, page.IsTruncated]).toEqual([1000, '1000', 'true']);
    const none = await list(server.url, { prefix: '', 'max-keys': '0' });
    expect([none.Contents, none.MaxKeys, none.IsTruncated]).toEqual([undefined, '0', 'false']);
    await server.close();
  });

  it('is an empty page for an unknown prefix, and 400 for wrong parameters', async () => {
    const server = await serve(folderWith({ [KEY]: CONTENT }));
    for (const prefix of ['data/nowhere/', `${KEY}/x`, 'other/', '/', 'data/../data/', '..']) {
      const page = await list(server.url, { prefix, delimiter: '/' });
      expect([page.Contents, page.CommonPrefixes, page.Prefix]).toEqual([undefined, undefined, prefix]);
    }
    for (const query of ['max-keys=x', 'max-keys=-1', 'prefix=&delimiter=-']) {
      expect([query, (await raw(server.url, `/?${query}`)).status]).toEqual([query, 400]);
    }
    await server.close();
  });

  it('leaves out hidden files, files outside data/ and symbolic links', async () => {
    const folder = folderWith({
      [KEY]: CONTENT,
      'secret.zip': '',
      'other/secret.zip': '',
      [`${SERIES}/.part`]: '',
      'data/.tmp/x.zip': '',
    });
    symlinkSync(join(folder, 'secret.zip'), join(folder, 'data/link.zip'));
    symlinkSync(folder, join(folder, 'data/loop'));
    const server = await serve(folder);
    expect(entriesOf(await list(server.url, { prefix: '' }))).toEqual([KEY, `${KEY}.CHECKSUM`]);
    expect(entriesOf(await list(server.url, { prefix: 'data/', delimiter: '/' }))).toEqual(['data/spot/']);
    expect(entriesOf(await list(server.url, { prefix: 'data/loop/data/' }))).toEqual([]);
    await server.close();
  });

  it('is empty when data is a symbolic link', async () => {
    const elsewhere = folderWith({ [KEY]: CONTENT });
    const folder = folderWith({});
    symlinkSync(join(elsewhere, 'data'), join(folder, 'data'));
    const server = await serve(folder);
    for (const prefix of ['', 'data/']) expect(entriesOf(await list(server.url, { prefix }))).toEqual([]);
    expect((await raw(server.url, `/${KEY}`)).status).toBe(404);
    await server.close();
  });
});
