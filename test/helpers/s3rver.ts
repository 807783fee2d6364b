/** s3rver, an S3 server of other authors, in this process. It keeps objects in a folder, ignores conditions, and checks no signature. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { createRequire } from 'node:module';

interface S3rver {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
}
type S3rverClass = new (options: Readonly<Record<string, unknown>>) => S3rver;

// The package has no types.
const require = createRequire(import.meta.url);

export interface ForeignServer {
  /** The variables with which a client finds the server and its credentials. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts the server with the bucket `lake`. `hasConditions`: a gate before it refuses puts whose condition does not hold. */
export async function s3rver(
  directory: string,
  { hasConditions = false }: { readonly hasConditions?: boolean } = {},
): Promise<ForeignServer> {
  const Server = require('s3rver') as S3rverClass;
  const server = new Server({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: 'lake' }],
  });
  const { port } = await server.run();
  const gate = hasConditions ? await gateOf(port) : undefined;
  return {
    environment: {
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${gate?.port ?? port}`,
      AWS_ACCESS_KEY_ID: 'S3RVER',
      AWS_SECRET_ACCESS_KEY: 'S3RVER',
    },
    close: async () => {
      await gate?.close();
      await server.close();
    },
  };
}

/** Passes requests on, puts of one object one after the other, and answers 412 where a condition does not hold. */
async function gateOf(port: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const turns = new Map<string, Promise<void>>();
  const gate = createServer((incoming, response) => {
    const { url = '', method = '' } = incoming;
    const [path = ''] = method === 'PUT' ? url.split('?') : [];
    const turn = (turns.get(path) ?? Promise.resolve()).then(() =>
      pass(`http://127.0.0.1:${port}${url}`, incoming, response),
    );
    if (method === 'PUT') turns.set(path, turn);
  }).listen(0, '127.0.0.1');
  await once(gate, 'listening');
  return {
    port: (gate.address() as AddressInfo).port,
    close: async () => {
      gate.closeAllConnections();
      gate.close();
      await once(gate, 'close');
    },
  };
}

/** Names of connections, which each connection has for itself. */
const OF_CONNECTION = new Set(['connection', 'content-length', 'expect', 'host', 'transfer-encoding']);

async function pass(url: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const { 'if-match': match, 'if-none-match': none, ...others } = incoming.headers;
    const found =
      match === undefined && none === undefined ? undefined : await fetch(url, { method: 'HEAD' });
    if (found !== undefined && (none === undefined ? found.headers.get('etag') !== match : found.ok)) {
      response.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>');
      return;
    }
    const headers = Object.entries(others).filter(([name]) => !OF_CONNECTION.has(name)) as [string, string][];
    const body = incoming.method === 'PUT' || incoming.method === 'POST' ? await buffer(incoming) : null;
    const answer = await fetch(url, { method: incoming.method ?? 'GET', headers, body });
    response.writeHead(answer.status, [...answer.headers].flat());
    response.end(Buffer.from(await answer.arrayBuffer()));
  } catch {
    // A killed worker leaves its request.
    response.destroy();
  }
}
