/** The server's limit of open connections. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterAll, expect, it } from 'vitest';
import { serveArchive } from '../../src/serve/serve.js';
import { folderWith, removeFolders } from '../helpers/served-folder.js';

afterAll(removeFolders);

it('closes connections beyond 512, keeps the others, and takes new ones when some have ended', async () => {
  const server = await serveArchive({ directory: folderWith({}), host: '127.0.0.1', port: 0 });
  const port = Number(new URL(server.url).port);
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  /** The first line of an answer; empty when the server closes instead. */
  const ask = (socket: Socket): Promise<string> =>
    new Promise((resolve) => {
      socket.once('data', (chunk: Buffer) => {
        resolve(chunk.toString('utf8').split('\r\n')[0] ?? '');
      });
      socket.once('close', () => {
        resolve('');
      });
      socket.write('GET /?prefix=data/ HTTP/1.1\r\nHost: x\r\n\r\n');
    });
  const held: Socket[] = [];
  for (let count = 0; count < 512; count += 1) held.push(await open());
  const [first, last] = [held[0], held.at(-1)];
  if (first === undefined || last === undefined) throw new Error('no connection was opened');
  expect(await ask(last)).toBe('HTTP/1.1 200 OK');
  expect(await ask(await open())).toBe('');
  expect(await ask(first)).toBe('HTTP/1.1 200 OK');
  first.destroy();
  await expect.poll(async () => ask(await open()), { timeout: 5000 }).toBe('HTTP/1.1 200 OK');
  await server.close();
});
