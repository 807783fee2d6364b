/** A bucket in memory whose objects change from day to day, behind ListObjects v1; it counts requests by lake and revision. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';

const SIDECAR = '.CHECKSUM';
const MOST_KEYS = 1000;

interface Stored {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modified: string;
}

export interface Bucket {
  /** Each lake asks below its own first path segment. */
  urlFor(lake: string): string;
  put(key: string, bytes: Buffer, modified: string): void;
  putSidecar(key: string, digest: string, modified: string): void;
  remove(key: string): void;
  /** `key@etag` of every answered zip request of a lake, in order; empties the list. */
  takeZipRequests(lake: string): string[];
  close(): Promise<void>;
}

export const digestOf = (algorithm: 'sha256' | 'md5', bytes: Buffer): string =>
  createHash(algorithm).update(bytes).digest('hex');

export async function startBucket(): Promise<Bucket> {
  const objects = new Map<string, Stored>();
  const zipRequests = new Map<string, string[]>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://bucket');
    const [, lake = '', ...rest] = decodeURIComponent(url.pathname).split('/');
    if (url.searchParams.has('prefix')) {
      send(response, 200, 'application/xml', Buffer.from(pageXml(objects, url.searchParams)));
      return;
    }
    const key = rest.join('/');
    const stored = objects.get(key);
    if (key.endsWith('.zip')) zipRequestsOf(lake).push(`${key}@${stored?.etag ?? 'missing'}`);
    if (stored === undefined) {
      send(response, 404, 'application/xml', Buffer.from('<Error><Code>NoSuchKey</Code></Error>'));
      return;
    }
    response.setHeader('etag', `"${stored.etag}"`);
    response.setHeader('last-modified', new Date(stored.modified).toUTCString());
    send(response, 200, key.endsWith('.zip') ? 'application/zip' : 'text/plain', stored.bytes);
  });
  const zipRequestsOf = (lake: string): string[] => {
    const list = zipRequests.get(lake) ?? [];
    zipRequests.set(lake, list);
    return list;
  };
  const put = (key: string, bytes: Buffer, modified: string): void => {
    objects.set(key, { bytes, etag: digestOf('md5', bytes), modified });
  };
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    urlFor: (lake) => `http://127.0.0.1:${port}/${lake}`,
    put,
    putSidecar: (key, digest, modified) => {
      put(key + SIDECAR, Buffer.from(`${digest}  ${basename(key)}\n`), modified);
    },
    remove: (key) => {
      objects.delete(key);
      objects.delete(key + SIDECAR);
    },
    takeZipRequests: (lake) => zipRequestsOf(lake).splice(0),
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function send(response: ServerResponse, status: number, type: string, body: Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': body.length });
  response.end(body);
}

/** One page of ListObjects v1: keys and common prefixes together, in key order, after the marker. */
function pageXml(objects: ReadonlyMap<string, Stored>, query: URLSearchParams): string {
  const prefix = query.get('prefix') ?? '';
  const marker = query.get('marker') ?? '';
  const delimiter = query.get('delimiter') ?? '';
  const most = Math.min(MOST_KEYS, Number(query.get('max-keys') ?? MOST_KEYS));
  const names = new Set<string>();
  for (const key of [...objects.keys()].sort()) {
    if (!key.startsWith(prefix)) continue;
    const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    names.add(end < 0 ? key : key.slice(0, end + 1));
  }
  const behind = [...names].filter((name) => name > marker);
  const page = behind.slice(0, most);
  const isTruncated = behind.length > page.length;
  const entries = page.map((name) => {
    const stored = objects.get(name);
    if (stored === undefined) return `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`;
    return `<Contents><Key>${name}</Key><LastModified>${stored.modified}</LastModified><ETag>&quot;${stored.etag}&quot;</ETag><Size>${stored.bytes.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
  });
  const next = isTruncated && delimiter !== '' ? `<NextMarker>${page.at(-1) ?? ''}</NextMarker>` : '';
  return `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>data.binance.vision</Name><Prefix>${prefix}</Prefix><Marker>${marker}</Marker>${next}<MaxKeys>${most}</MaxKeys><Delimiter>${delimiter}</Delimiter><IsTruncated>${isTruncated}</IsTruncated>${entries.join('')}</ListBucketResult>`;
}
