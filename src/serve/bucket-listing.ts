/** One page of the bucket listing: parses the query string, and reads the page from the folder. */
import { lstat, opendir, readdir, realpath } from 'node:fs/promises';
import type { Dirent } from 'node:fs';
import { join } from 'node:path';
import type { DigestCache } from './etags.js';
import { etagOf, sizeOf } from './etags.js';
import {
  isKeyPart,
  mayHaveSidecar,
  missingAsUndefined,
  pathOfKey,
  SIDECAR_SUFFIX,
  TOP_FOLDER,
} from './object-store.js';
import type { Refusal } from './refusal.js';
import { invalidArgument } from './refusal.js';

/** An entry of the listing. */
export interface ListedObject {
  readonly key: string;
  readonly lastModified: Date;
  /** Quoted. */
  readonly etag: string;
  readonly sizeBytes: number;
}

/** One page of a listing. */
export interface ListingPage {
  readonly objects: readonly ListedObject[];
  readonly commonPrefixes: readonly string[];
  /** Key of the last entry of this page; undefined for the last page. */
  readonly resumeAfter: string | undefined;
}

/** Number of files that are read at the same time. */
const CONCURRENCY = 16;

/** The page of a query. A folder that does not exist gives an empty page. Rejects with file system errors. */
export async function readPage(
  root: string,
  query: ListingQuery,
  digests: DigestCache,
): Promise<ListingPage> {
  const { entries, resumeAfter } = await collect(root, query);
  const objects: ListedObject[] = [];
  for (let i = 0; i < entries.length; i += CONCURRENCY) {
    const described = entries.slice(i, i + CONCURRENCY).map((entry) => describe(entry, digests));
    for (const object of await Promise.all(described)) if (object !== undefined) objects.push(object);
  }
  const commonPrefixes = entries.filter((entry) => entry.kind === 'prefix').map((entry) => entry.key);
  return { objects, commonPrefixes, resumeAfter };
}

async function collect(
  root: string,
  { prefix, after, delimiter, maxKeys }: ListingQuery,
): Promise<{ entries: BucketEntry[]; resumeAfter: string | undefined }> {
  const entries: BucketEntry[] = [];
  for await (const entry of walkBucket(root, { prefix, after, folded: delimiter === '/' })) {
    if (entries.length === maxKeys) return { entries, resumeAfter: entries.at(-1)?.key };
    entries.push(entry);
  }
  return { entries, resumeAfter: undefined };
}

/** Undefined for a common prefix, and for a file that was removed after its folder was read. */
async function describe(entry: BucketEntry, digests: DigestCache): Promise<ListedObject | undefined> {
  if (entry.kind === 'prefix') return undefined;
  const { key, path, virtual } = entry;
  return missingAsUndefined(async () => {
    const stats = await lstat(path, { bigint: true });
    const object = { path, stats, virtual };
    const etag = await etagOf(object, digests);
    return { key, lastModified: stats.mtime, etag, sizeBytes: sizeOf(object) };
  });
}

/** One entry of a listing: an object with the path of its file, or a common prefix that ends in a slash. */
type BucketEntry =
  | { readonly kind: 'object'; readonly key: string; readonly path: string; readonly virtual: boolean }
  | { readonly kind: 'prefix'; readonly key: string };

/** Selects entries of the listing. */
interface Range {
  readonly prefix: string;
  /** Exclusive lower bound. An object with this key need not exist. */
  readonly after: string;
  /** Report folders as common prefixes instead of descending into them. */
  readonly folded: boolean;
}

/**
 * The entries of a range in byte order. Reads a folder only when it is reached, and no folder outside the range,
 * so that objects in other folders do not make a page slower.
 */
async function* walkBucket(root: string, range: Range): AsyncGenerator<BucketEntry> {
  const top = `${TOP_FOLDER}/`;
  const start = range.prefix.slice(0, range.prefix.lastIndexOf('/') + 1);
  const folder = pathOfKey(root, (start === '' ? top : start).slice(0, -1));
  if (folder === undefined) return;
  const real = await missingAsUndefined(() => realpath(folder));
  if (real !== folder) return;
  if (start === '') yield* walkChild(folder, { name: top, virtual: false }, '', range);
  else yield* walkFolder(folder, start, range);
}

/** A name in a folder. Names of folders end in a slash, so that they sort like their keys. */
interface Child {
  readonly name: string;
  /** True for a sidecar without a file on disk. */
  readonly virtual: boolean;
}

async function* walkFolder(folder: string, keyPrefix: string, range: Range): AsyncGenerator<BucketEntry> {
  const entries = (await missingAsUndefined(() => readdir(folder, { withFileTypes: true }))) ?? [];
  const children = childrenOf(entries).filter((child) => isInRange(keyPrefix + child.name, range));
  children.sort((a, b) => compareKeys(a.name, b.name));
  for (const child of children) yield* walkChild(join(folder, child.name), child, keyPrefix, range);
}

async function* walkChild(
  path: string,
  child: Child,
  keyPrefix: string,
  range: Range,
): AsyncGenerator<BucketEntry> {
  const key = keyPrefix + child.name;
  if (!isInRange(key, range)) return;
  if (!key.endsWith('/')) {
    const source = child.virtual ? path.slice(0, -SIDECAR_SUFFIX.length) : path;
    yield { kind: 'object', key, path: source, virtual: child.virtual };
  } else if (!range.folded) {
    yield* walkFolder(path, key, range);
  } else if (await holdsObjects(path)) {
    yield { kind: 'prefix', key };
  }
}

function childrenOf(entries: readonly Dirent[]): Child[] {
  const usable = entries.filter((entry) => isKeyPart(entry.name));
  const files = new Set(usable.filter((entry) => entry.isFile()).map((entry) => entry.name));
  const children: Child[] = [];
  for (const { name } of usable.filter((entry) => entry.isDirectory())) {
    children.push({ name: `${name}/`, virtual: false });
  }
  for (const name of files) {
    children.push({ name, virtual: false });
    const sidecar = name + SIDECAR_SUFFIX;
    if (mayHaveSidecar(name) && !files.has(sidecar)) children.push({ name: sidecar, virtual: true });
  }
  return children;
}

/** Whether a key can be in range. For the key of a folder: whether the folder or a key in it can be in range. */
function isInRange(key: string, { prefix, after, folded }: Range): boolean {
  if (!key.startsWith(prefix)) return false;
  if (compareKeys(key, after) > 0) return true;
  return !folded && key.endsWith('/') && after.startsWith(key);
}

/** A folder without objects is not a common prefix. Stops at the first object. */
async function holdsObjects(folder: string): Promise<boolean> {
  const directory = await missingAsUndefined(() => opendir(folder));
  if (directory === undefined) return false;
  for await (const entry of directory) {
    if (!isKeyPart(entry.name)) continue;
    if (entry.isFile()) return true;
    if (entry.isDirectory() && (await holdsObjects(join(folder, entry.name)))) return true;
  }
  return false;
}

/**
 * Orders two keys as S3 does: by the bytes of their UTF-8 form.
 * The order of JavaScript strings differs where a surrogate pair meets U+E000..U+FFFF.
 */
function compareKeys(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Moves surrogates after the rest of the basic plane, where their code points are. */
function rank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}

// The query string.

/** S3 returns at most 1000 entries per page. */
const PAGE_LIMIT = 1000;

/** A listing request, validated. */
export interface ListingQuery {
  readonly version: 1 | 2;
  readonly prefix: string;
  readonly delimiter: '' | '/';
  /** Entries up to and including this key are left out. */
  readonly after: string;
  readonly maxKeys: number;
  /** Keys are returned percent-encoded. */
  readonly urlEncoded: boolean;
  /** As sent; the response repeats it. */
  readonly marker: string;
  readonly startAfter: string | undefined;
  readonly continuationToken: string | undefined;
}

/** Reads the parameters of ListObjects (v1) and ListObjectsV2 (`list-type=2`). */
export function readListingQuery(query: ReadonlyMap<string, string>): ListingQuery | Refusal {
  const version = query.get('list-type') === '2' ? 2 : 1;
  const delimiter = query.get('delimiter') ?? '';
  if (delimiter !== '' && delimiter !== '/') {
    return { status: 501, refusal: 'NotImplemented', message: 'The only delimiter of this archive is /' };
  }
  const maxKeys = query.get('max-keys') ?? '';
  const encoding = query.get('encoding-type') ?? '';
  const continuationToken = version === 2 ? query.get('continuation-token') : undefined;
  const resumed = continuationToken === undefined ? undefined : readToken(continuationToken);
  const isTokenWrong = continuationToken !== undefined && resumed === undefined;
  if (!/^\d{0,9}$/.test(maxKeys) || !['', 'url'].includes(encoding) || isTokenWrong)
    return invalidArgument('max-keys, encoding-type or continuation-token is wrong');
  const marker = version === 1 ? (query.get('marker') ?? '') : '';
  const startAfter = version === 2 ? query.get('start-after') : undefined;
  return {
    version,
    prefix: query.get('prefix') ?? '',
    delimiter,
    after: resumed ?? startAfter ?? marker,
    maxKeys: maxKeys === '' ? PAGE_LIMIT : Math.min(Number(maxKeys), PAGE_LIMIT),
    urlEncoded: encoding === 'url',
    marker,
    startAfter,
    continuationToken,
  };
}

/** The opaque token that resumes a listing after this key. */
export function makeToken(key: string): string {
  return Buffer.from(key).toString('base64url');
}

function readToken(token: string): string | undefined {
  const key = Buffer.from(token, 'base64url').toString();
  return key !== '' && makeToken(key) === token ? key : undefined;
}
