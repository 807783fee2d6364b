/** `cryptodl serve` and a client that reads nothing; socket timeouts pass a hundred times as fast. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';

const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));
const BYTES = 32 * 1024 * 1024;
const FASTER = `
  import { Socket } from 'node:net';
  const usual = Socket.prototype.setTimeout;
  Socket.prototype.setTimeout = function (ms, ...rest) {
    return usual.call(this, ms / 100, ...rest);
  };
`;
const scratch = scratchFolder();

it('closes the connection of a client that reads nothing for 30 seconds', async () => {
  const folder = join(scratch, 'data/spot/daily/trades/A');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '1.zip'), Buffer.alloc(BYTES));
  const faster = join(scratch, 'faster.mjs');
  writeFileSync(faster, FASTER);
  const served = spawn(process.execPath, ['--import', faster, BIN, 'serve', scratch, '--port', '0']);
  onTestFinished(() => {
    served.kill();
  });
  const [line] = (await once(served.stdout, 'data')) as [Buffer];
  const socket = connect(Number(new URL(line.toString().trim()).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write('GET /data/spot/daily/trades/A/1.zip HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'readable');
  const isClosed = once(socket, 'close');
  await new Promise((resolve) => setTimeout(resolve, 1500));
  let got = 0;
  socket.on('data', (chunk: Buffer) => {
    got += chunk.length;
    if (got > BYTES) socket.destroy();
  });
  await isClosed;
  expect(got).toBeLessThan(BYTES);
});
