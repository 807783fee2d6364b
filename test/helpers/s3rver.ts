/** s3rver, an S3 server of other authors, in this process. It keeps objects in a folder, ignores conditions, and checks no signature. */
import { createServer, request } from 'node:http';
import type { IncomingMessage, RequestOptions, ServerResponse } from 'node:http';
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

/** Passes requests on, those that change one object one after the other, and answers 412 where a condition does not hold. */
async function gateOf(port: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const turns = new Map<string, Promise<void>>();
  const gate = createServer((incoming, response) => {
    const { method = '', url = '' } = incoming;
    if (method !== 'PUT' && method !== 'DELETE') {
      void pass(port, incoming, response);
      return;
    }
    const path = url.split('?')[0] ?? '';
    const turn = (turns.get(path) ?? Promise.resolve()).then(async () => {
      if (await holds(port, path, incoming.headers)) await pass(port, incoming, response);
      else response.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>');
    });
    turns.set(path, turn);
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

async function holds(port: number, path: string, headers: IncomingMessage['headers']): Promise<boolean> {
  const { 'if-match': match, 'if-none-match': none } = headers;
  if (match === undefined && none === undefined) return true;
  const { statusCode, headers: found } = await sent({ port, path, method: 'HEAD' });
  return none === undefined ? found.etag === match : statusCode === 404;
}

function sent(options: RequestOptions, body?: IncomingMessage): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', ...options }, (answer) => {
      resolve(options.method === 'HEAD' ? answer.resume() : answer);
    }).on('error', reject);
    if (body === undefined) outgoing.end();
    else body.pipe(outgoing);
  });
}

async function pass(port: number, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url, headers } = incoming;
  const { 'if-match': _, 'if-none-match': __, ...other } = headers;
  try {
    const answer = await sent({ port, method, path: url, headers: other }, incoming);
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
    // A killed worker leaves its connection before the answer is complete.
    await once(response, 'close');
  } catch {
    response.destroy();
  }
}
