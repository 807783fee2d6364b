/** One page of the bucket listing: its query string, its entries in the folder, and its XML document. */
import { lstat, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { mapOrdered } from '../../model/in-order.js';
import {
  etagOf,
  sizeOf,
  isKeyPart,
  mayHaveSidecar,
  missingAsUndefined,
  pathOfKey,
  SIDECAR_SUFFIX,
  TOP_FOLDER,
} from './object-store.js';
import type { DigestCache } from './object-store.js';

/** S3 returns at most 1000 entries per page. */
const PAGE_LIMIT = 1000;

export type ListingQuery = Readonly<NonNullable<ReturnType<typeof readListingQuery>>>;

/** Reads the parameters of ListObjects. Undefined for a wrong value. */
export function readListingQuery(query: Pick<URLSearchParams, 'get'>) {
  const delimiter = query.get('delimiter') ?? '';
  const maxKeys = query.get('max-keys') ?? '';
  if ((delimiter !== '' && delimiter !== '/') || !/^\d{0,9}$/.test(maxKeys)) return undefined;
  return {
    prefix: query.get('prefix') ?? '',
    delimiter,
    // Entries up to and including this key are left out. An object with this key need not exist.
    after: query.get('marker') ?? '',
    maxKeys: maxKeys === '' ? PAGE_LIMIT : Math.min(Number(maxKeys), PAGE_LIMIT),
  };
}

export type BucketPage = Awaited<ReturnType<typeof readBucketPage>>;

const CONCURRENCY = 16;

/** The page of a query. A folder that does not exist gives an empty page. Rejects with file system errors. */
export async function readBucketPage(root: string, query: ListingQuery, digests: DigestCache) {
  const entries: BucketEntry[] = [];
  /** Key of the last entry of this page; undefined for the last page. */
  let resumeAfter: string | undefined;
  for await (const entry of walkBucket(root, query)) {
    if (entries.length === query.maxKeys) {
      resumeAfter = entries.at(-1)?.key;
      break;
    }
    entries.push(entry);
  }
  const commonPrefixes = entries.filter(isFolder).map(({ key }) => key);
  const objects = [];
  for await (const object of mapOrdered(entries, CONCURRENCY, (entry) => describe(entry, digests)))
    if (object !== undefined) objects.push(object);
  return { objects, commonPrefixes, resumeAfter };
}

/** Undefined for a common prefix, and for a file that was removed after its folder was read. */
async function describe(entry: BucketEntry, digests: DigestCache) {
  if (isFolder(entry)) return undefined;
  const { key, path, virtual } = entry;
  return missingAsUndefined(async () => {
    const stats = await lstat(path, { bigint: true });
    const object = { path, stats, virtual };
    const etag = await etagOf(object, digests);
    return { key, lastModified: stats.mtime, etag, sizeBytes: sizeOf(object) };
  });
}

/** An object, or a folder, whose key ends in a slash. */
interface BucketEntry {
  readonly key: string;
  /** Path of the folder or of the file; for a generated sidecar, of the file that it belongs to. */
  readonly path: string;
  /** True for a sidecar without a file on disk. */
  readonly virtual: boolean;
}

const isFolder = ({ key }: BucketEntry): boolean => key.endsWith('/');

type Range = Pick<ListingQuery, 'after' | 'delimiter' | 'prefix'>;

/**
 * The entries of a range in byte order. Reads a folder only when it is reached, and no folder outside the range,
 * so that objects in other folders do not make a page slower.
 */
async function* walkBucket(root: string, range: Range): AsyncGenerator<BucketEntry> {
  const start = range.prefix.slice(0, range.prefix.lastIndexOf('/') + 1);
  const key = start === '' ? `${TOP_FOLDER}/` : start;
  const path = pathOfKey(root, key.slice(0, -1));
  if (path === undefined || (await missingAsUndefined(() => realpath(path))) !== path) return;
  const top = { key, path, virtual: false };
  yield* walkEntries(start === '' ? [top] : await entriesIn(top), range);
}

async function* walkEntries(entries: readonly BucketEntry[], range: Range): AsyncGenerator<BucketEntry> {
  const inRange = entries.filter(({ key }) => isInRange(key, range));
  for (const entry of inRange.sort((a, b) => compareKeys(a.key, b.key))) {
    if (range.delimiter === '/' || !isFolder(entry)) yield entry;
    else yield* walkEntries(await entriesIn(entry), range);
  }
}

async function entriesIn(folder: BucketEntry): Promise<BucketEntry[]> {
  const found = (await missingAsUndefined(() => readdir(folder.path, { withFileTypes: true }))) ?? [];
  const files = new Set(found.filter((entry) => entry.isFile()).map(({ name }) => name));
  return found.flatMap((entry) => {
    const { name } = entry;
    const key = folder.key + name;
    const path = join(folder.path, name);
    if (!isKeyPart(name)) return [];
    if (entry.isDirectory()) return [{ key: `${key}/`, path, virtual: false }];
    if (!entry.isFile()) return [];
    const object = { key, path, virtual: false };
    if (!mayHaveSidecar(name) || files.has(name + SIDECAR_SUFFIX)) return [object];
    return [object, { key: key + SIDECAR_SUFFIX, path, virtual: true }];
  });
}

/** Whether a key can be in range. For the key of a folder: whether the folder or a key in it can be in range. */
function isInRange(key: string, { prefix, after, delimiter }: Range): boolean {
  if (!key.startsWith(prefix)) return false;
  if (compareKeys(key, after) > 0) return true;
  return delimiter === '' && key.endsWith('/') && after.startsWith(key);
}

/** Orders two keys as S3 does: by the bytes of their UTF-8 form. */
const compareKeys = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
