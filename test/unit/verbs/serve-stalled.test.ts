/** Clients that do not read their response, do not end their request, or open too many connections. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterAll, expect, it } from 'vitest';
import { serveArchive } from '../../../src/verbs/serve/serve.js';
import { folderWith, removeFolders } from '../../helpers/served-folder.js';

const BYTES = 32 * 1024 * 1024;
const KEY = 'data/spot/daily/trades/A/1.zip';

afterAll(removeFolders);

it('closes the connection of a client that reads nothing, and keeps one that reads', async () => {
  const directory = folderWith({ [KEY]: 'x'.repeat(BYTES) });
  const server = await serveArchive({ directory, host: '127.0.0.1', port: 0, stalledMs: 200 });
  const { port } = new URL(server.url);
  const ask = (): ReturnType<typeof connect> => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(`GET /${KEY} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return socket;
  };
  const stalled = ask();
  await once(stalled, 'readable');
  let taken = 0;
  const steady = ask();
  for await (const chunk of steady) {
    taken += (chunk as Buffer).length;
    if (taken > BYTES) break;
  }
  expect(taken).toBeGreaterThan(BYTES);
  let got = 0;
  const isClosed = once(stalled, 'close');
  await new Promise((resolve) => setTimeout(resolve, 700));
  stalled.on('data', (chunk: Buffer) => (got += chunk.length));
  await isClosed;
  expect(got).toBeLessThan(BYTES);
  await server.close();
});

it('answers a request that does not arrive, and ends', async () => {
  const directory = folderWith({});
  const server = await serveArchive({ directory, host: '127.0.0.1', port: 0, requestMs: 100 });
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: ');
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 408 /);
  await once(socket, 'close');
  await server.close();
});

it('closes a connection beyond 512, and takes one when another has ended', async () => {
  const server = await serveArchive({ directory: folderWith({}), host: '127.0.0.1', port: 0 });
  /** The first bytes of an answer; empty when the server closes instead. */
  const ask = (socket: Socket): Promise<string> => {
    socket.on('error', () => undefined).write('GET /?prefix=data/ HTTP/1.1\r\nHost: x\r\n\r\n');
    const closed = new Promise<string>((resolve) => socket.once('close', () => resolve('')));
    return Promise.race([once(socket, 'data').then(String), closed]);
  };
  const open = (): Socket => connect(Number(new URL(server.url).port), '127.0.0.1');
  const held = Array.from({ length: 512 }, open);
  for (const socket of held) expect(await ask(socket)).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(await ask(open())).toBe('');
  held[0]?.destroy();
  await expect.poll(() => ask(open()), { timeout: 5000 }).toMatch(/^HTTP\/1\.1 200 OK/);
  await server.close();
});
