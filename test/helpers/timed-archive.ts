/** An archive in memory whose objects have revisions with times of publication. It serves the revisions of one moment. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';
import { makeZip } from '../../scripts/make-zip.js';

const SIDECAR = '.CHECKSUM';
const MOST_KEYS = 1000;

/** `atMs`: the time of its publication. */
export interface Revision {
  readonly atMs: number;
  readonly csv: () => string;
}

interface Stored {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modified: string;
}

export class TimedArchive {
  nowMs = 0;
  /** Answers with an error in place of an object or a page, if it returns true. */
  isDown: (path: string) => boolean = () => false;
  readonly #revisions = new Map<string, readonly Revision[]>();
  readonly #stored = new Map<Revision, { readonly zip: Stored; readonly sidecar: Stored }>();
  #keys: readonly string[] | undefined;
  #close: () => Promise<void> = () => Promise.resolve();
  url = '';

  async open(): Promise<void> {
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://archive');
      if (this.isDown(url.pathname + url.search)) {
        response.writeHead(503).end();
        return;
      }
      const path = decodeURIComponent(url.pathname).slice(1);
      if (url.searchParams.has('prefix'))
        send(response, 'application/xml', Buffer.from(this.#page(url.searchParams)));
      else this.#object(path, response);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    this.url = `http://127.0.0.1:${port}`;
    this.#close = () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** Replaces all objects. Revisions are in order of time. */
  replaceAll(objects: ReadonlyMap<string, readonly Revision[]>): void {
    this.#revisions.clear();
    this.#stored.clear();
    this.#keys = undefined;
    for (const [key, revisions] of objects) this.#revisions.set(key, revisions);
  }

  /** The revision of a key that is published now. */
  #now(key: string): { readonly zip: Stored; readonly sidecar: Stored } | undefined {
    const revision = this.#revisions.get(key)?.findLast(({ atMs }) => atMs <= this.nowMs);
    if (revision === undefined) return undefined;
    const known = this.#stored.get(revision);
    if (known !== undefined) return known;
    const member = basename(key).replace(/zip$/, 'csv');
    const bytes = makeZip([{ name: member, data: revision.csv(), method: 0 }]);
    const digest = createHash('sha256').update(bytes).digest('hex');
    const modified = new Date(revision.atMs).toISOString();
    const text = Buffer.from(`${digest}  ${basename(key)}\n`);
    const stored = {
      zip: { bytes, etag: etagOf(bytes), modified },
      sidecar: { bytes: text, etag: etagOf(text), modified },
    };
    this.#stored.set(revision, stored);
    return stored;
  }

  #of(path: string): Stored | undefined {
    if (path.endsWith(SIDECAR)) return this.#now(path.slice(0, -SIDECAR.length))?.sidecar;
    return this.#now(path)?.zip;
  }

  #object(path: string, response: ServerResponse): void {
    const stored = this.#of(path);
    if (stored === undefined) {
      response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>');
      return;
    }
    response.setHeader('etag', `"${stored.etag}"`);
    response.setHeader('last-modified', new Date(stored.modified).toUTCString());
    send(response, path.endsWith('.zip') ? 'application/zip' : 'text/plain', stored.bytes);
  }

  /** One page of ListObjects v1. */
  #page(query: URLSearchParams): string {
    this.#keys ??= [...this.#revisions.keys()].flatMap((key) => [key, key + SIDECAR]).sort();
    const prefix = query.get('prefix') ?? '';
    const marker = query.get('marker') ?? '';
    const delimiter = query.get('delimiter') ?? '';
    const most = Math.min(MOST_KEYS, Number(query.get('max-keys') ?? MOST_KEYS));
    const names: string[] = [];
    const entries: string[] = [];
    let isTruncated = false;
    for (const key of this.#keys) {
      if (!key.startsWith(prefix)) continue;
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      const name = end < 0 ? key : key.slice(0, end + 1);
      if (name <= marker || name === names.at(-1)) continue;
      const stored = this.#of(key);
      if (stored === undefined) continue;
      isTruncated = names.length === most;
      if (isTruncated) break;
      names.push(name);
      entries.push(
        end < 0
          ? `<Contents><Key>${name}</Key><LastModified>${stored.modified}</LastModified><ETag>&quot;${stored.etag}&quot;</ETag><Size>${stored.bytes.length}</Size></Contents>`
          : `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`,
      );
    }
    const next = isTruncated && delimiter !== '' ? `<NextMarker>${names.at(-1) ?? ''}</NextMarker>` : '';
    return `<?xml version="1.0"?><ListBucketResult><Name>archive</Name><Prefix>${prefix}</Prefix><Marker>${marker}</Marker>${next}<MaxKeys>${most}</MaxKeys><Delimiter>${delimiter}</Delimiter><IsTruncated>${isTruncated}</IsTruncated>${entries.join('')}</ListBucketResult>`;
  }
}

function etagOf(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('hex');
}

function send(response: ServerResponse, type: string, body: Buffer): void {
  response.writeHead(200, { 'content-type': type, 'content-length': body.length });
  response.end(body);
}
