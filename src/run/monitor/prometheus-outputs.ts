/** Where Prometheus finds the metrics: a server during the run, and a file for node_exporter. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename } from 'node:path';
import { beginsWith, refuseForeignFile, writeOwnFile, type OwnFile } from '../../files/own-file.js';
import { errnoOf, toCryptodlError, usage } from '../../model/errors.js';
import { reasonOf } from '../../text/path-faults.js';
import type { PrometheusFigures } from './prometheus.js';

/** Prometheus scrapes with one connection. Further ones are for people. */
const MOST_CONNECTIONS = 16;
/** Idle and slow connections end after a few seconds, so that they do not keep the next reader out. */
const TIME_LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 2000,
  connectionsCheckingInterval: 1000,
};

/** Serves the page at `/metrics`. Returns the function that ends the server. Rejects with a usage error if it cannot listen. */
export async function servePage(
  page: PrometheusFigures,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<() => Promise<void>> {
  const server = createServer(TIME_LIMITS, (request, response) => {
    const [path] = (request.url ?? '').split('?');
    if (path !== '/metrics') response.writeHead(404).end('metrics are at /metrics\n');
    else if (request.method !== 'GET' && request.method !== 'HEAD')
      response.writeHead(405, { allow: 'GET, HEAD' }).end();
    else
      page.text().then(
        (text) => response.writeHead(200, { 'content-type': page.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const why = errnoOf(error) === 'EADDRINUSE' ? 'another program listens there' : reasonOf(error);
    throw usage(`--prometheus-port: cannot listen on ${host} port ${port} (${why})`, 'choose another port');
  }
  // A run that has ended must not wait for a reader of its metrics.
  server.unref();
  return async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
}

/**
 * Rejects with a usage error for a file of another kind. The returned function replaces the file in one step, because node_exporter may read
 * it at any time; it resolves with a warning if that fails. The label `textfile` keeps the files of several commands apart: node_exporter
 * refuses equal metrics of two files.
 */
export async function openTextfile(
  path: string,
  page: PrometheusFigures,
): Promise<() => Promise<string | undefined>> {
  const file: OwnFile = {
    flag: 'prometheus-textfile',
    path,
    what: 'a file of these metrics',
    isOwn: beginsWith('# HELP cryptodl_'),
    // The user of node_exporter must be able to read it, whatever the umask is.
    mode: 0o644,
    takesStreams: true,
  };
  await refuseForeignFile(file);
  return async () => {
    const text = await page.text({ textfile: basename(path, '.prom') });
    try {
      await writeOwnFile(file, (staged) => writeFile(staged, text));
      return undefined;
    } catch (error) {
      return toCryptodlError(error).message;
    }
  };
}
