/** A server that speaks raw bytes, to tell all the lies that node:http refuses to tell. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface WireServer {
  readonly url: string;
  /** Heads of the requests, in order of arrival. */
  readonly heads: string[];
  readonly sockets: Socket[];
}

/** Calls back with every complete request head; gone when the test is over. */
export async function wireServer(onRequest: (socket: Socket) => void): Promise<WireServer> {
  const heads: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let received = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
        heads.push(received.slice(0, end));
        received = received.slice(end + 4);
        onRequest(socket);
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heads, sockets };
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A whole answer with an honest length, unless the headers say another. */
export function httpAnswer(status: number, body: Buffer | string, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body);
  const isSized = headers.some((line) => /^(content-length|transfer-encoding):/i.test(line));
  const lines = [
    `HTTP/1.1 ${status} Said`,
    ...headers,
    ...(isSized ? [] : [`Content-Length: ${bytes.length}`]),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes]);
}
