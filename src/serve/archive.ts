/** An HTTP server that behaves like the archive: objects, sidecars and the bucket listing of a local folder. */
import { realpathSync } from 'node:fs';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';

import { usage } from '../model/errors.js';
import { readPage } from './bucket-listing.js';
import { DigestCache } from './etags.js';
import { readListingQuery } from './listing-query.js';
import { listingXml } from './listing-xml.js';
import { findObject } from './object-store.js';
import { sendObject } from './object-response.js';
import { INTERNAL_ERROR, METHOD_NOT_ALLOWED, noSuchKey, sendRefusal, sendXml } from './refusal.js';
import { readTarget } from './request-target.js';

const KEEP_ALIVE_MS = 60_000;
/** A connection whose client reads nothing for so long is closed, because its data waits in memory. */
const STALLED_MS = 30_000;
/** Each connection may hold some hundred kB of memory. Further connections are closed without a response. */
const MOST_CONNECTIONS = 512;

/**
 * Serves a folder in the archive's key layout (`<directory>/data/...`) as the archive itself would: objects, sidecars
 * and the bucket listing. Symbolic links and hidden files below the folder are not part of it.
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
      reject(usage(`cannot listen on ${host}:${port}: ${error.message}`, 'choose another --port or --host'));
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
