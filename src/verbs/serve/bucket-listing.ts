/** One page of the bucket listing: its query string, its entries in the folder, and its XML document. */
import { lstat, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
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
import type { ServerResponse } from 'node:http';
import { mapOrdered } from '../../model/in-order.js';

/** A listing request, validated. */
export interface ListingQuery {
  readonly prefix: string;
  readonly delimiter: '' | '/';
  /** Entries up to and including this key are left out. An object with this key need not exist. */
  readonly after: string;
  readonly maxKeys: number;
}

/** S3 returns at most 1000 entries per page. */
const PAGE_LIMIT = 1000;

/** Reads the parameters of ListObjects. Undefined for a wrong value. */
export function readListingQuery(query: Pick<URLSearchParams, 'get'>): ListingQuery | undefined {
  const delimiter = query.get('delimiter') ?? '';
  const maxKeys = query.get('max-keys') ?? '';
  if ((delimiter !== '' && delimiter !== '/') || !/^\d{0,9}$/.test(maxKeys)) return undefined;
  return {
    prefix: query.get('prefix') ?? '',
    delimiter,
    after: query.get('marker') ?? '',
    maxKeys: maxKeys === '' ? PAGE_LIMIT : Math.min(Number(maxKeys), PAGE_LIMIT),
  };
}

export type ListingPage = Awaited<ReturnType<typeof readPage>>;

const CONCURRENCY = 16;

/** The page of a query. A folder that does not exist gives an empty page. Rejects with file system errors. */
export async function readPage(root: string, query: ListingQuery, digests: DigestCache) {
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

function isFolder({ key }: BucketEntry): boolean {
  return key.endsWith('/');
}

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
function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The `ListBucketResult` document of a page. */
export function listingXml(query: ListingQuery, page: ListingPage): string {
  const { objects, commonPrefixes, resumeAfter } = page;
  return [
    `${XML_DECLARATION}<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`,
    element('Name', 'data.binance.vision'),
    element('Prefix', query.prefix),
    element('MaxKeys', query.maxKeys),
    query.delimiter === '' ? '' : element('Delimiter', query.delimiter),
    element('IsTruncated', resumeAfter !== undefined),
    resumeAfter === undefined ? '' : element('NextMarker', resumeAfter),
    ...objects.map(({ key, lastModified, etag, sizeBytes }) => {
      // S3 keeps whole seconds, so that a listing and the Last-Modified header agree.
      const seconds = lastModified.toISOString().replace(/\.\d+Z$/, '.000Z');
      const facts = [element('LastModified', seconds), element('ETag', etag), element('Size', sizeBytes)];
      return `<Contents>${element('Key', key)}${facts.join('')}<StorageClass>STANDARD</StorageClass></Contents>`;
    }),
    ...commonPrefixes.map((key) => `<CommonPrefixes>${element('Prefix', key)}</CommonPrefixes>`),
    '</ListBucketResult>',
  ].join('');
}

/** Status and message of each error code of S3 that the server sends. */
const REFUSALS = {
  InternalError: [500, 'We encountered an internal error. Please try again.'],
  InvalidArgument: [400, 'max-keys or delimiter is wrong; the only delimiter of this archive is /'],
  InvalidRange: [416, 'The requested range is not satisfiable'],
  InvalidURI: [400, "Couldn't parse the specified URI."],
  MethodNotAllowed: [405, 'The specified method is not allowed against this resource.'],
  NoSuchKey: [404, 'The specified key does not exist.'],
} as const;

export type RefusalCode = keyof typeof REFUSALS;

/** Sends the error document, which repeats the requested key. Node drops the body for HEAD. */
export function sendRefusal(
  response: ServerResponse,
  code: RefusalCode,
  { key, headers = {} }: { readonly key?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): void {
  const [status, message] = REFUSALS[code];
  const named = key === undefined ? '' : element('Key', key);
  const facts = element('Code', code) + element('Message', message) + named;
  const ids = '<RequestId>0000000000000000</RequestId><HostId>cryptodl</HostId>';
  sendXml(response, status, `${XML_DECLARATION}<Error>${facts}${ids}</Error>`, headers);
}

export function sendXml(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/xml',
    'Content-Length': bytes.length,
  });
  response.end(bytes);
}

const NAMED: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text as XML content; control characters become numeric references, as S3 writes them. */
function escapeXml(text: string): string {
  // eslint-disable-next-line no-control-regex -- the expression must match control characters
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (c) => NAMED[c] ?? `&#x${c.charCodeAt(0).toString(16)};`);
}

function element(name: string, text: string | number | boolean): string {
  return `<${name}>${escapeXml(String(text))}</${name}>`;
}

const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
