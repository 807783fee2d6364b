/** A folder served in the archive's protocol, with a request log and room for faults. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { archiveHandler } from '../../src/serve/archive.js';

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

export async function startArchive(directory: string): Promise<TestArchive> {
  const handle = archiveHandler(directory);
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '');
    requests.push(path);
    if (archive.fault?.(path, request, response) === true) return;
    handle(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const archive: TestArchive = {
    url: `http://127.0.0.1:${port}`,
    requests,
    objectRequests: () => requests.filter((path) => !path.includes('prefix=')),
    fault: undefined,
    serve: handle,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
  return archive;
}
