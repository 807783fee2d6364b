/** A proxy for http on loopback, with credentials and faults. */
import { createServer, request as ask } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface TestProxy {
  /** `127.0.0.1:PORT` */
  readonly label: string;
  /** With user and password, if the proxy wants them. */
  readonly address: string;
  /** Addresses of requests, in order of arrival. */
  readonly asked: string[];
  /** Answers a request in place of its host; false: the host answers. */
  fault: ((url: string, request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Closes its connections and accepts none until `start`. */
  stop(): void;
  start(): Promise<void>;
}

/** `credentials`: `user:password`. */
export async function startProxy(credentials?: string): Promise<TestProxy> {
  const sockets = new Set<Socket>();
  const expected =
    credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
  const server = createServer((request, response) => {
    const url = request.url ?? '';
    proxy.asked.push(url);
    const { 'proxy-authorization': given, ...headers } = request.headers;
    if (expected !== undefined && given !== expected) {
      response.writeHead(407, { 'proxy-authenticate': 'Basic' }).end();
      return;
    }
    if (proxy.fault?.(url, request, response) === true) return;
    const forwarded = ask(url, { headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    forwarded.end();
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => {
      server.listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const user = credentials === undefined ? '' : `${credentials}@`;
  const proxy: TestProxy = {
    label: `127.0.0.1:${port}`,
    address: `http://${user}127.0.0.1:${port}`,
    asked: [],
    fault: undefined,
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
    start: () => listen(port),
  };
  return proxy;
}
