/** A bucket that has nothing but keys: real key listings behind ListObjects v1. */
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const HOST = 'https://data.binance.vision/';
const SIDECAR = '.CHECKSUM';
const LINE_END = 0x0a;
const MOST_KEYS = 1000;

/**
 * Zips in key order, two positions for each: the zip and its sidecar. The keys stay the bytes that they are in the file;
 * one string each would cost several times as much.
 */
export class KeyStore {
  readonly #bytes: Buffer;
  readonly #ends: Uint32Array;
  readonly #alone: ReadonlySet<string>;

  /** Texts of one URL a line, together in UTF-8 byte order; zips in `alone` have no sidecar. */
  constructor(texts: readonly Buffer[], alone: ReadonlySet<string> = new Set()) {
    this.#bytes = Buffer.concat(texts);
    this.#alone = alone;
    const ends: number[] = [];
    for (let end = this.#bytes.indexOf(LINE_END); end >= 0; end = this.#bytes.indexOf(LINE_END, end + 1)) {
      ends.push(end);
    }
    this.#ends = Uint32Array.from(ends);
    for (let zip = 1; zip < this.zips; zip += 1) {
      if (Buffer.compare(this.#zip(zip - 1), this.#zip(zip)) >= 0) {
        throw new RangeError(`${this.key(2 * zip)} is not in key order`);
      }
    }
  }

  get zips(): number {
    return this.#ends.length;
  }

  get end(): number {
    return 2 * this.zips;
  }

  key(position: number): string {
    const zip = this.#zip(position >> 1).toString('utf8');
    return position % 2 === 0 ? zip : zip + SIDECAR;
  }

  isThere(position: number): boolean {
    return position % 2 === 0 || this.#alone.size === 0 || !this.#alone.has(this.key(position - 1));
  }

  /** First position whose key is not below `key`. */
  atOrAfter(key: string): number {
    const wanted = Buffer.from(key);
    let low = 0;
    for (let high = this.end; low < high;) {
      const middle = (low + high) >> 1;
      const zip = this.#zip(middle >> 1);
      const bytes = middle % 2 === 0 ? zip : Buffer.concat([zip, Buffer.from(SIDECAR)]);
      if (Buffer.compare(bytes, wanted) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #zip(index: number): Buffer {
    const start = index === 0 ? 0 : (this.#ends[index - 1] ?? 0) + 1;
    return this.#bytes.subarray(start + HOST.length, this.#ends[index]);
  }
}

/** URL lines as the key listings have them. */
export function urlLines(keys: readonly string[]): Buffer {
  return Buffer.from(keys.map((key) => `${HOST}${key}\n`).join(''));
}

/** Made up, and always the same for a key. */
export function sizeOf(key: string): number {
  return key.endsWith(SIDECAR) ? 66 + key.length - key.lastIndexOf('/') : 1000 + (hashOf(key) % 99_000);
}

function etagOf(key: string): string {
  return hashOf(key).toString(16).padStart(8, '0').repeat(4);
}

function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

interface Page {
  readonly keys: readonly string[];
  readonly prefixes: readonly string[];
  readonly next: string | undefined;
}

/** Entries behind the marker, in key order; a common prefix takes the place of all its keys. */
function pageOf(store: KeyStore, prefix: string, marker: string, delimiter: string, most: number): Page {
  const keys: string[] = [];
  const prefixes: string[] = [];
  let last = '';
  // A marker that is a common prefix stands for all its keys.
  const isFolder = delimiter !== '' && marker.startsWith(prefix) && marker.endsWith(delimiter);
  const behind = isFolder ? behindAll(marker) : `${marker}\0`;
  let position = Math.max(store.atOrAfter(prefix), marker === '' ? 0 : store.atOrAfter(behind));
  for (; position < store.end;) {
    const key = store.key(position);
    if (!key.startsWith(prefix)) break;
    if (!store.isThere(position)) {
      position += 1;
      continue;
    }
    if (keys.length + prefixes.length === most) return { keys, prefixes, next: last };
    const slash = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    if (slash < 0) {
      keys.push(key);
      last = key;
      position += 1;
    } else {
      last = key.slice(0, slash + delimiter.length);
      prefixes.push(last);
      position = store.atOrAfter(behindAll(last));
    }
  }
  return { keys, prefixes, next: undefined };
}

/** The first text behind everything that starts so; the last character is ASCII. */
function behindAll(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

function pageXml(query: URLSearchParams, store: KeyStore): string {
  const prefix = query.get('prefix') ?? '';
  const marker = query.get('marker') ?? '';
  const delimiter = query.get('delimiter') ?? '';
  const most = Math.min(MOST_KEYS, Number(query.get('max-keys') ?? MOST_KEYS));
  const { keys, prefixes, next } = pageOf(store, prefix, marker, delimiter, most);
  let xml = `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>data.binance.vision</Name><Prefix>${prefix}</Prefix><Marker>${marker}</Marker>`;
  if (next !== undefined && delimiter !== '') xml += `<NextMarker>${next}</NextMarker>`;
  xml += `<MaxKeys>${most}</MaxKeys>`;
  if (delimiter !== '') xml += `<Delimiter>${delimiter}</Delimiter>`;
  xml += `<IsTruncated>${next !== undefined}</IsTruncated>`;
  for (const key of keys) {
    xml += `<Contents><Key>${key}</Key><LastModified>2026-02-04T06:00:00.000Z</LastModified><ETag>&quot;${etagOf(key)}&quot;</ETag><Size>${sizeOf(key)}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
  }
  for (const folder of prefixes) xml += `<CommonPrefixes><Prefix>${folder}</Prefix></CommonPrefixes>`;
  return `${xml}</ListBucketResult>`;
}

export interface KeyArchive {
  readonly url: string;
  /** Listing pages sent. */
  pages(): number;
  /** Paths of the other requests that `answer` left; they were answered with 404. */
  readonly objectRequests: string[];
  close(): Promise<void>;
}

/** `answer` answers a request for an object itself and returns true. */
export async function startKeyArchive(
  store: KeyStore,
  answer: (key: string, response: ServerResponse) => boolean = () => false,
): Promise<KeyArchive> {
  const objectRequests: string[] = [];
  let pages = 0;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://bucket');
    if (!url.searchParams.has('prefix')) {
      const path = decodeURIComponent(url.pathname);
      if (answer(path.slice(1), response)) return;
      objectRequests.push(path);
      response.writeHead(404, { 'content-type': 'application/xml' });
      response.end('<Error><Code>NoSuchKey</Code></Error>');
      return;
    }
    pages += 1;
    response.writeHead(200, { 'content-type': 'application/xml' });
    response.end(pageXml(url.searchParams, store));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages: () => pages,
    objectRequests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
