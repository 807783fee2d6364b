/** `cryptodl serve DIR`: serves a folder like the archive, with objects, sidecars and listing, until a signal ends it. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { realpathSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { errnoOf, usage } from '../model/errors.js';
import { exitCodeOfSignal } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import type { Options } from '../options/flags.js';
import { printLines } from '../text/printable.js';
import { makeToken, readListingQuery, readPage } from './bucket-listing.js';
import type { ListedObject, ListingPage, ListingQuery } from './bucket-listing.js';
import { DigestCache } from './etags.js';
import { sendObject } from './object-response.js';
import { findObject, TOP_FOLDER } from './object-store.js';
import {
  element,
  INTERNAL_ERROR,
  INVALID_URI,
  METHOD_NOT_ALLOWED,
  noSuchKey,
  sendRefusal,
  sendXml,
  XML_DECLARATION,
} from './refusal.js';
import type { Refusal } from './refusal.js';

/** Resolves with 130 or 143 after a signal. Throws usage errors for a wrong folder, host or port. */
export async function serve(directory: string, options: Options, io: Io): Promise<ExitCode> {
  if (!(await isFolder(directory))) throw usage(`${directory} is not a folder`, SERVED);
  if (!(await isFolder(join(directory, TOP_FOLDER))))
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
  return exitCodeOfSignal(signal);
}

const SERVED = `name the --out of a run with --format zip, for example:
cryptodl vision --symbols BTCUSDT --days 7 --format zip --out ./raw`;

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}

// The HTTP server.

const KEEP_ALIVE_MS = 60_000;
/** A connection without activity for this long is closed, because its data waits in memory. */
const STALLED_MS = 30_000;
/** Each connection may hold some hundred kB of memory. Further connections are closed without a response. */
const MOST_CONNECTIONS = 512;

/**
 * Serves a folder in the archive's key layout (`<directory>/data/...`) as the archive itself would: objects, sidecars
 * and the bucket listing. Symbolic links and hidden files below the folder are not served.
 * Throws `usage` when there is no such folder.
 */
export function archiveHandler(
  directory: string,
): (request: IncomingMessage, response: ServerResponse) => void {
  const root = realFolder(directory);
  const digests = new DigestCache();
  return (request, response) => {
    answer(root, digests, request, response).catch(() => {
      // A client that closed its connection ends here too, and gets no response.
      if (response.headersSent || response.destroyed) response.destroy();
      else sendRefusal(response, INTERNAL_ERROR);
    });
  };
}

/** Starts a server for `archiveHandler`; port 0 takes a free one. `close` also ends open connections. */
export async function serveArchive(options: {
  directory: string;
  host: string;
  port: number;
  stalledMs?: number;
}): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(archiveHandler(options.directory));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.maxConnections = MOST_CONNECTIONS;
  server.timeout = options.stalledMs ?? STALLED_MS;
  await listen(server, options.host, options.port);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return { url: `http://${host}:${port}`, close: () => close(server) };
}

async function answer(
  root: string,
  digests: DigestCache,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    sendRefusal(response, METHOD_NOT_ALLOWED);
    return;
  }
  const target = readTarget(request.url ?? '');
  if ('refusal' in target) {
    sendRefusal(response, target);
  } else if (target.kind === 'listing') {
    const query = readListingQuery(target.query);
    if ('refusal' in query) sendRefusal(response, query);
    else sendXml(response, 200, listingXml(query, await readPage(root, query, digests)));
  } else {
    const object = await findObject(root, target.key);
    if (object === undefined) sendRefusal(response, noSuchKey(target.key));
    else await sendObject(request, response, object, digests);
  }
}

function realFolder(directory: string): string {
  try {
    return realpathSync(directory);
  } catch {
    throw usage(
      `there is no folder ${directory} to serve`,
      'name a folder that holds data/spot or data/futures',
    );
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const hint = 'choose another --host or --port; --port 0 chooses a free port';
      reject(usage(`cannot listen on ${host} port ${port} (${errnoOf(error)})`, hint));
    });
    server.listen(port, host, resolve);
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

// Parses the target of a request: an object or a page of the listing.

const BUCKET = '/data.binance.vision';

/** A page of the listing, or the object with this key, which may not exist. */
type Target =
  | { readonly kind: 'listing'; readonly query: ReadonlyMap<string, string> }
  | { readonly kind: 'object'; readonly key: string };

const LISTING_PARAMETERS = ['prefix', 'delimiter', 'marker', 'list-type', 'max-keys'];

/**
 * Reads the target of the request line, in virtual-host style (`/<key>`) or path style
 * (`/data.binance.vision/<key>`). Percent-encoding that is not UTF-8 gives an error response.
 */
export function readTarget(url: string): Target | Refusal {
  const mark = url.indexOf('?');
  const rawPath = mark === -1 ? url : url.slice(0, mark);
  const path = decode(rawPath);
  const query = readQuery(mark === -1 ? '' : url.slice(mark + 1));
  if (path === undefined || query === undefined || !path.startsWith('/')) return INVALID_URI;
  const isRoot = path === '/' || path === BUCKET || path === `${BUCKET}/`;
  if (isRoot && LISTING_PARAMETERS.some((name) => query.has(name))) return { kind: 'listing', query };
  const key = path.startsWith(`${BUCKET}/`) ? path.slice(BUCKET.length + 1) : path.slice(1);
  return { kind: 'object', key };
}

function readQuery(text: string): ReadonlyMap<string, string> | undefined {
  const query = new Map<string, string>();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(plusAsBlank(equals === -1 ? pair : pair.slice(0, equals)));
    const value = decode(plusAsBlank(equals === -1 ? '' : pair.slice(equals + 1)));
    if (name === undefined || value === undefined) return undefined;
    if (!query.has(name)) query.set(name, value);
  }
  return query;
}

function plusAsBlank(text: string): string {
  return text.replaceAll('+', ' ');
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

// The XML of a listing page.

/** The `ListBucketResult` document of a page. */
export function listingXml(query: ListingQuery, page: ListingPage): string {
  const name = query.urlEncoded ? urlEncode : (key: string): string => key;
  const prefixes = page.commonPrefixes.map(
    (key) => `<CommonPrefixes>${element('Prefix', name(key))}</CommonPrefixes>`,
  );
  return [
    `${XML_DECLARATION}<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`,
    element('Name', 'data.binance.vision'),
    element('Prefix', name(query.prefix)),
    ...(query.version === 1 ? pagingV1(query, page, name) : pagingV2(query, page, name)),
    element('MaxKeys', query.maxKeys),
    query.delimiter === '' ? '' : element('Delimiter', query.delimiter),
    query.urlEncoded ? element('EncodingType', 'url') : '',
    element('IsTruncated', page.resumeAfter !== undefined),
    ...page.objects.map((object) => contents(object, name)),
    ...prefixes,
    '</ListBucketResult>',
  ].join('');
}

type Naming = (key: string) => string;

function pagingV1(query: ListingQuery, page: ListingPage, name: Naming): string[] {
  const next = query.delimiter === '' ? undefined : page.resumeAfter;
  return [element('Marker', name(query.marker)), next === undefined ? '' : element('NextMarker', name(next))];
}

function pagingV2(query: ListingQuery, page: ListingPage, name: Naming): string[] {
  const { continuationToken, startAfter } = query;
  return [
    element('KeyCount', page.objects.length + page.commonPrefixes.length),
    continuationToken === undefined ? '' : element('ContinuationToken', continuationToken),
    startAfter === undefined ? '' : element('StartAfter', name(startAfter)),
    page.resumeAfter === undefined ? '' : element('NextContinuationToken', makeToken(page.resumeAfter)),
  ];
}

function contents({ key, lastModified, etag, sizeBytes }: ListedObject, name: Naming): string {
  // S3 keeps whole seconds, so that a listing and the Last-Modified header agree.
  const seconds = lastModified.toISOString().replace(/\.\d+Z$/, '.000Z');
  return (
    `<Contents>${element('Key', name(key))}${element('LastModified', seconds)}${element('ETag', etag)}` +
    `${element('Size', sizeBytes)}<StorageClass>STANDARD</StorageClass></Contents>`
  );
}

function urlEncode(key: string): string {
  return key.split('/').map(encodeURIComponent).join('/');
}
