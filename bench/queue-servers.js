/** The servers of a queue, as processes of their own: redis-server, and the S3 server of the tests. */
import { fork, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';

/** @import { AddressInfo } from 'node:net' */

/**
 * @param {string} folder for its append-only file
 * @returns {Promise<{ address: string, client: Redis, close: () => void }>}
 */
export async function startRedis(folder) {
  const port = await freePort();
  const words = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const child = spawn('redis-server', [...words, '--appendonly', 'yes'], { stdio: 'ignore' });
  child.on('error', () => {
    console.error('redis-server is not installed: apt install redis-server');
    process.exit(1);
  });
  const kill = () => child.kill();
  process.on('exit', kill);
  const address = `redis://127.0.0.1:${port}`;
  const client = new Redis(address, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  client.on('error', () => undefined);
  await client.ping();
  return {
    address,
    client,
    close: () => {
      client.disconnect();
      kill();
    },
  };
}

/**
 * @param {number} delayMs
 * @param {string} folder
 * @returns {Promise<{ environment: NodeJS.ProcessEnv, close: () => void }>}
 */
export async function startS3(delayMs, folder) {
  const program = fileURLToPath(new URL('s3-server.js', import.meta.url));
  const child = fork(program, [mkdtempSync(join(folder, 's3-')), String(delayMs)]);
  /** @type {{ environment: NodeJS.ProcessEnv }} */
  const { environment } = await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the S3 server ended with exit code ${code}`)));
  });
  return { environment, close: () => child.kill() };
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {AddressInfo} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  return port;
}
