/** One client of `serve` that holds all connections, beside another one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterAll, expect, it } from 'vitest';
import { BIN } from '../helpers/cli.js';
import { folderWith, removeFolders } from '../helpers/served-folder.js';

afterAll(removeFolders);

// Other systems have one address on loopback.
it.skipIf(process.platform !== 'linux')(
  'serve: 550 half-sent requests of one client do not stop another',
  async () => {
    const folder = folderWith({ 'data/spot/daily/trades/A/1.zip': 'x' });
    const server = spawn(process.execPath, [BIN, 'serve', folder, '--port', '0'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const held: Socket[] = [];
    try {
      const [line] = (await once(server.stdout.setEncoding('utf8'), 'data')) as [string];
      const port = Number(new URL(line.trim()).port);
      const open = async (localAddress: string, request: string): Promise<Socket> => {
        const socket = connect({ port, host: '127.0.0.1', localAddress });
        socket.on('error', () => undefined);
        await once(socket, 'connect');
        socket.write(request);
        return socket;
      };
      for (let count = 0; count < 550; count += 1)
        held.push(await open('127.0.0.1', 'GET / HTTP/1.1\r\nHost: '));
      for (const address of ['127.0.0.2', '127.0.0.3']) {
        const other = await open(address, 'GET /?prefix=data/ HTTP/1.1\r\nHost: x\r\n\r\n');
        const answer = await Promise.race([
          once(other, 'data').then(String),
          once(other, 'close').then(() => ''),
        ]);
        expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
        held.push(other);
      }
    } finally {
      for (const socket of held) socket.destroy();
      server.kill();
      await once(server, 'exit');
    }
  },
);
