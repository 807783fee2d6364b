/** A folder served in the archive's protocol, with a request log and room for faults. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { archiveHandler } from '../../src/verbs/serve/serve.js';

export interface TestArchive {
  readonly url: string;
  /** Decoded path and query of every request, in order of arrival. */
  readonly requests: string[];
  /** Requests of zips and sidecars. */
  objectRequests(): string[];
  /** Answers the request itself and returns true, or leaves it to the folder. */
  fault: ((path: string, request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** The folder's own answer, for a fault that only delays. */
  serve: (request: IncomingMessage, response: ServerResponse) => void;
  close(): Promise<void>;
}

export interface ArchiveOptions {
  /** A free one when nothing is said. */
  readonly port?: number;
  /** PEM; plain HTTP without. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Beside HTTP/1.1; needs `tls`. */
  readonly http2?: boolean;
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

export async function startArchive(directory: string, options: ArchiveOptions = {}): Promise<TestArchive> {
  const handle = archiveHandler(directory);
  const requests: string[] = [];
  const server = serverFor(options, (request, response) => {
    const path = decodeURIComponent(request.url ?? '');
    requests.push(path);
    if (archive.fault?.(path, request, response) === true) return;
    handle(request, response);
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const archive: TestArchive = {
    url: `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests,
    objectRequests: () => requests.filter((path) => !path.includes('prefix=')),
    fault: undefined,
    serve: handle,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        for (const socket of sockets) socket.destroy();
      }),
  };
  return archive;
}

function serverFor({ tls, http2 }: ArchiveOptions, listener: Listener): Server {
  if (tls === undefined) return createServer(listener);
  if (http2 !== true) return createTlsServer(tls, listener);
  // Node's HTTP/2 server speaks the interface of its HTTP/1.1 server as far as the archive needs it.
  return createSecureServer({ ...tls, allowHTTP1: true }, listener as never) as unknown as Server;
}
