/** A real redis-server on a free port of this machine, without files. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { freePort } from './prometheus.js';

export const HAS_REDIS = spawnSync('redis-server', ['--version']).status === 0;
/** Appended to the titles of suites. */
export const NEEDS_REDIS = HAS_REDIS ? '' : ' (needs redis-server: apt install redis-server)';

export interface RedisProcess {
  readonly port: number;
  readonly address: string;
  /** A client of the test itself. */
  readonly client: Redis;
  /** The process ends without saving. */
  kill(): Promise<void>;
  /** A new process on the same port, without data. */
  start(): Promise<void>;
  /** Suspends the process, so that it keeps its connections and answers nothing. */
  suspend(): void;
  resume(): void;
  close(): Promise<void>;
}

/** Resolves when the server answers. */
export async function startRedis(words: readonly string[] = [], password = ''): Promise<RedisProcess> {
  const port = await freePort();
  const user = password === '' ? '' : `:${password}@`;
  const address = `redis://${user}127.0.0.1:${port}`;
  const client = new Redis(address, {
    lazyConnect: true,
    maxRetriesPerRequest: null,
    retryStrategy: () => 20,
  });
  client.on('error', () => undefined);
  let running: ChildProcess;
  const start = async (): Promise<void> => {
    const basics = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const secret = password === '' ? [] : ['--requirepass', password];
    running = spawn('redis-server', [...basics, ...secret, ...words], { stdio: 'ignore' });
    if (client.status === 'wait') await client.connect().catch(() => undefined);
    await client.ping();
  };
  const kill = async (): Promise<void> => {
    if (running.exitCode !== null || running.signalCode !== null) return;
    running.kill('SIGKILL');
    await once(running, 'exit');
  };
  await start();
  return {
    port,
    address,
    client,
    start,
    kill,
    suspend: () => running.kill('SIGSTOP'),
    resume: () => running.kill('SIGCONT'),
    close: async () => {
      client.disconnect();
      await kill();
    },
  };
}
