/** `cryptodl serve DIR`: serves a folder like the archive, with objects, sidecars and listing, until a signal ends it. */
import { join } from 'node:path';
import { existsSync, realpathSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { errnoOf, usage } from '../../model/errors.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import type { Options } from '../../plan/options/flags.js';
import { printLines } from '../../text/printable.js';
import { listingXml, sendRefusal, sendXml } from './s3-xml.js';
import { readListingQuery, readBucketPage } from './bucket-listing.js';
import {
  DigestCache,
  findObject,
  TOP_FOLDER,
  etagOf,
  sidecarText,
  sizeOf,
  openObject,
  SIDECAR_SUFFIX,
  type StoredObject,
} from './object-store.js';
import { pipeline } from 'node:stream/promises';

/** Resolves with 130 or 143 after a signal. Throws usage errors for a wrong folder, host or port. */
export async function serve(directory: string, options: Options<'host' | 'port'>, io: Io): Promise<ExitCode> {
  if (!existsSync(join(directory, TOP_FOLDER)))
    throw usage(`${directory} has no folder ${TOP_FOLDER} with the zips of the archive`, SERVED);
  const server = await serveArchive({ directory, host: options.host, port: options.port });
  const signalled = new Promise<'SIGINT' | 'SIGTERM'>((resolve) => {
    io.onSignal(resolve);
  });
  printLines(io.stdout, [server.url]);
  printLines(io.stderr, [
    `serving ${directory} for use inside your organisation, with --archive-url ${server.url}; Ctrl-C ends it`,
  ]);
  const signal = await signalled;
  await server.close();
  return exitCode({ signal });
}

const SERVED = `name the --out of a run with --format zip, for example:
cryptodl vision --symbols BTCUSDT --days 7 --format zip --out ./raw`;

const KEEP_ALIVE_MS = 60_000;
/** A connection without activity for this long is closed, because its data waits in memory. */
const STALLED_MS = 30_000;
/** A request must arrive within this time. */
const REQUEST_MS = 10_000;
/** Each connection may hold some hundred kB of memory. */
const MOST_CONNECTIONS = 512;

/**
 * The folder has the archive's key layout (`<directory>/data/...`). Symbolic links and hidden files below it are not served.
 * Throws the error of the file system when there is no such folder.
 */
export function archiveHandler(
  directory: string,
): (request: IncomingMessage, response: ServerResponse) => void {
  const root = realpathSync(directory);
  const digests = new DigestCache();
  return (request, response) => {
    answer(root, digests, request, response).catch(() => {
      // A client that closed its connection ends here too, and gets no response.
      if (response.headersSent || response.destroyed) response.destroy();
      else sendRefusal(response, 'InternalError');
    });
  };
}

/** Starts a server for `archiveHandler`; port 0 takes a free one. `close` also ends open connections. */
export async function serveArchive({
  directory,
  host,
  port,
  stalledMs = STALLED_MS,
  requestMs = REQUEST_MS,
}: {
  directory: string;
  host: string;
  port: number;
  stalledMs?: number;
  requestMs?: number;
}): Promise<{ url: string; close(): Promise<void> }> {
  const limits = {
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: 1000,
  };
  const server = createServer(limits, archiveHandler(directory));
  server.maxConnections = MOST_CONNECTIONS;
  server.timeout = stalledMs;
  server.listen(port, host);
  await once(server, 'listening').catch((error: unknown) => {
    throw usage(
      `cannot listen on ${host} port ${port} (${errnoOf(error)})`,
      'choose another --host or --port; --port 0 chooses a free port',
    );
  });
  const { port: opened } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${opened}`,
    close: async () => {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function answer(
  root: string,
  digests: DigestCache,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const target = readTarget(request.url ?? '');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    sendRefusal(response, 'MethodNotAllowed', { headers: { Allow: 'GET, HEAD' } });
  } else if (target === undefined) {
    sendRefusal(response, 'InvalidURI');
  } else if (typeof target !== 'string') {
    const query = readListingQuery(target);
    if (query === undefined) sendRefusal(response, 'InvalidArgument');
    else sendXml(response, 200, listingXml(query, await readBucketPage(root, query, digests)));
  } else {
    const object = await findObject(root, target);
    if (object === undefined) sendRefusal(response, 'NoSuchKey', { key: target });
    else await sendObject(request, response, object, digests);
  }
}

const BUCKET = '/data.binance.vision';

const LISTING_PARAMETERS = ['prefix', 'delimiter', 'marker', 'max-keys'];

/**
 * Reads the target of the request line, in virtual-host style (`/<key>`) or path style
 * (`/data.binance.vision/<key>`): the query of a listing, or the key of an object, which may not exist. Undefined for a path
 * whose percent-encoding is not UTF-8.
 */
export function readTarget(url: string): URLSearchParams | string | undefined {
  const [rawPath = '', ...parameters] = url.split('?');
  const query = new URLSearchParams(parameters.join('?'));
  try {
    const path = decodeURIComponent(rawPath);
    if (!path.startsWith('/')) return undefined;
    const isRoot = path === '/' || path === BUCKET || path === `${BUCKET}/`;
    if (isRoot && LISTING_PARAMETERS.some((name) => query.has(name))) return query;
    return path.startsWith(`${BUCKET}/`) ? path.slice(BUCKET.length + 1) : path.slice(1);
  } catch {
    return undefined;
  }
}

/** Responds to GET and HEAD with 200, 206 or 416. */
async function sendObject(
  request: IncomingMessage,
  response: ServerResponse,
  stored: StoredObject,
  digests: DigestCache,
): Promise<void> {
  const size = sizeOf(stored);
  const validators = {
    ETag: await etagOf(stored, digests),
    'Last-Modified': stored.stats.mtime.toUTCString(),
  };
  const { range: asked, 'if-range': revision = validators.ETag } = request.headers;
  const isCurrent = revision === validators.ETag || revision === validators['Last-Modified'];
  // The CDN of the archive ignores a range on HEAD (observed).
  const range = request.method === 'GET' && isCurrent ? readRange(asked, size) : undefined;
  if (range === 'unsatisfiable') {
    sendRefusal(response, 'InvalidRange', { headers: { 'Content-Range': `bytes */${size}` } });
    return;
  }
  const part = range ?? { firstByte: 0, lastByte: size - 1 };
  response.writeHead(range === undefined ? 200 : 206, {
    ...validators,
    'Accept-Ranges': 'bytes',
    'Content-Type':
      stored.virtual || stored.path.endsWith(SIDECAR_SUFFIX) ? 'binary/octet-stream' : 'application/zip',
    'Content-Length': part.lastByte - part.firstByte + 1,
    ...(range === undefined ? {} : { 'Content-Range': `bytes ${part.firstByte}-${part.lastByte}/${size}` }),
  });
  if (request.method === 'HEAD' || size === 0) response.end();
  else if (stored.virtual)
    response.end(Buffer.from(await sidecarText(stored, digests)).subarray(part.firstByte, part.lastByte + 1));
  else await stream(response, stored, part);
}

/** About two chunks per connection are in memory. */
const CHUNK_BYTES = 64 * 1024;

/** Streams a part of a file. If the file becomes shorter during the response, the connection is closed before the end. */
async function stream(response: ServerResponse, stored: StoredObject, part: ByteRange): Promise<void> {
  const opened = await openObject(stored);
  const { firstByte: start, lastByte: end } = part;
  const file = opened.createReadStream({ start, end, highWaterMark: CHUNK_BYTES });
  await pipeline(file, response, { end: false });
  if (file.bytesRead === end - start + 1) response.end();
  else response.destroy();
}

/** Part of an object; both ends are included, as in the `Content-Range` header. */
interface ByteRange {
  readonly firstByte: number;
  readonly lastByte: number;
}

/** Reads a `Range` header for an object of `size` bytes (RFC 9110, 14.2). Undefined for all but one well-formed range; servers ignore such headers. */
function readRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '');
  const [from, to] = [match?.[1] ?? '', match?.[2] ?? ''];
  if (match === null || (from === '' && to === '')) return undefined;
  if (from === '') {
    const length = Math.min(Number(to), size);
    return length === 0 ? 'unsatisfiable' : { firstByte: size - length, lastByte: size - 1 };
  }
  const firstByte = Number(from);
  if (to !== '' && Number(to) < firstByte) return undefined;
  if (firstByte >= size) return 'unsatisfiable';
  return { firstByte, lastByte: to === '' ? size - 1 : Math.min(Number(to), size - 1) };
}
