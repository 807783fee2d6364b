/** What a bucket does on any S3 server. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LakeBucket } from '../../src/lake/s3/bucket.js';
import { scratchFolder } from './folders.js';
import { refusal } from './requests.js';

const MIB = 1024 * 1024;

/** Names with every character that an address or a signature treats in its own way. */
const NAMES = [
  'binance/um/klines/interval=1m/symbol=BTCUSDT/2026-11.parquet',
  'binance/um/klines/interval=1m/symbol=币安人生USDT/2026-11.parquet',
  'a+b c%20d%2Fe&f=g;h,i:j@k!l\'m(n)o*p~q"r<s>t#u?v[w]x{y}z|^`$.csv',
  'ünïcode/😀',
];

/** The size of parts with which `open` must open the bucket. */
export const CONTRACT_PART_BYTES = 5 * MIB;

/** Two parts; each MiB differs from the others. */
const LARGE = Buffer.concat(
  Array.from({ length: 6 }, (_, part) =>
    Buffer.alloc(
      MIB,
      Uint8Array.from({ length: 251 }, (_byte, index) => (index * 31 + part * 7) % 251),
    ),
  ),
);

/** `open` gives an empty folder in a bucket. `unfinished` counts the multipart uploads that its server has. */
export function bucketContract(open: () => Promise<LakeBucket>, unfinished: () => number | undefined): void {
  const folder = scratchFolder();
  let files = 0;
  const fileOf = (content: Buffer | string): string => {
    files += 1;
    const path = join(folder, `file-${files}`);
    writeFileSync(path, content);
    return path;
  };
  const contentOf = async (bucket: LakeBucket, key: string): Promise<string | undefined> => {
    const path = join(folder, 'received');
    return (await bucket.get(key, path)) === undefined ? undefined : readFileSync(path, 'latin1');
  };

  describe('an object', () => {
    it.each(NAMES)('is stored, listed, read and removed as %s', async (key) => {
      const bucket = await open();
      const sha256 = createHash('sha256').update('content').digest('hex');
      const { etag } = await bucket.put(key, fileOf('content'));
      expect(await contentOf(bucket, key)).toBe('content');
      expect(await bucket.head(key)).toMatchObject({ key, bytes: 7, etag, sha256 });
      expect(await all(bucket.list(''))).toMatchObject([{ key, bytes: 7, etag }]);
      expect(await all(bucket.list(key.slice(0, 5)))).toHaveLength(1);
      await bucket.remove(key);
      expect(await bucket.head(key)).toBeUndefined();
      expect(await contentOf(bucket, key)).toBeUndefined();
      expect(await all(bucket.list(''))).toEqual([]);
    });

    it('may be empty, and may be larger than a chunk', async () => {
      const bucket = await open();
      const large = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, index) => (index * 31) % 251));
      await bucket.put('empty', fileOf(''));
      await bucket.put('large', fileOf(large));
      expect(await contentOf(bucket, 'empty')).toBe('');
      expect(await contentOf(bucket, 'large')).toBe(large.toString('latin1'));
    });

    it('replaces an earlier one', async () => {
      const bucket = await open();
      const first = await bucket.put('key', fileOf('first'));
      const second = await bucket.put('key', fileOf('second'));
      expect(second.etag).not.toBe(first.etag);
      expect(await contentOf(bucket, 'key')).toBe('second');
    });

    it('is removed a second time without an error', async () => {
      const bucket = await open();
      await expect(bucket.remove('never there')).resolves.toBeUndefined();
    });
  });

  describe('a condition', () => {
    it('stores an object only where there is none', async () => {
      const bucket = await open();
      await bucket.put('key', fileOf('first'), null);
      const error = await refusal(bucket.put('key', fileOf('second'), null));
      expect(error.code).toBe('lake-conflict');
      expect(await contentOf(bucket, 'key')).toBe('first');
    });

    it('replaces only the object that it names', async () => {
      const bucket = await open();
      const { etag } = await bucket.put('key', fileOf('first'));
      const second = await bucket.put('key', fileOf('second'), etag);
      const error = await refusal(bucket.put('key', fileOf('third'), etag));
      expect(error.code).toBe('lake-conflict');
      await bucket.put('key', fileOf('fourth'), second.etag);
      expect(await contentOf(bucket, 'key')).toBe('fourth');
    });

    it('does not store an object in place of one that was removed', async () => {
      const bucket = await open();
      const { etag } = await bucket.put('key', fileOf('first'));
      await bucket.remove('key');
      expect((await refusal(bucket.put('key', fileOf('second'), etag))).code).toBe('lake-conflict');
      expect(await bucket.head('key')).toBeUndefined();
    });

    it('is kept if the object already has the same bytes', async () => {
      const bucket = await open();
      const { etag } = await bucket.put('key', fileOf('same'), null);
      expect(await bucket.put('key', fileOf('same'), null)).toEqual({ etag });
    });
  });

  describe('a multipart upload', () => {
    it('stores a large object, with its digest', async () => {
      const bucket = await open();
      const path = fileOf(LARGE);
      const { etag } = await bucket.put('a b/large', path, null);
      const sha256 = createHash('sha256').update(LARGE).digest('hex');
      expect(await bucket.head('a b/large')).toMatchObject({ bytes: LARGE.length, etag, sha256 });
      const received = join(folder, 'received-large');
      await bucket.get('a b/large', received);
      expect(readFileSync(received).equals(LARGE)).toBe(true);
      expect(unfinished()).toBe(0);
    });

    it('keeps its condition, and leaves nothing behind', async () => {
      const bucket = await open();
      const path = fileOf(LARGE);
      const first = await bucket.put('large', fileOf('small'));
      const error = await refusal(bucket.put('large', path, null));
      expect(error.code).toBe('lake-conflict');
      expect(await contentOf(bucket, 'large')).toBe('small');
      expect(unfinished()).toBe(0);
      await bucket.put('large', path, first.etag);
      expect(await bucket.head('large')).toMatchObject({ bytes: LARGE.length });
    });
  });

  it('a listing has all objects below its prefix and no others, over several pages', async () => {
    const bucket = await open();
    const keys = Array.from({ length: 25 }, (_, index) => `a/${String(index).padStart(2, '0')}`);
    for (const key of [...keys, 'ab', 'b/1']) await bucket.put(key, fileOf(key));
    expect((await all(bucket.list('a/'))).map(({ key }) => key)).toEqual(keys);
    expect(await all(bucket.list(''))).toHaveLength(27);
    expect(await all(bucket.list('c/'))).toEqual([]);
  });
}

export async function all<T>(objects: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const object of objects) list.push(object);
  return list;
}
