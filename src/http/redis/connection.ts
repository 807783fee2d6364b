/** The owner of ioredis, an optional package: loads it on first use, connects, and checks that the server is one that the program can use. */
import type { Redis } from 'ioredis';
import { CryptodlError } from '../../model/errors.js';
import { loadOptional } from '../../files/optional-package.js';
import { redisProblem, refusedServer, shownRedis } from './redis-errors.js';

/**
 * - `limit`: a command fails at once without a connection, and after a second without an answer, because its caller can do without it.
 * - `queue`: a command waits for the next connection. A connection without an answer for half a minute is ended.
 */
export type RedisUse = 'limit' | 'queue';

export interface RedisConnection {
  /** Connects again by itself after each loss, until `close`. */
  readonly client: Redis;
  /** Ends with the first attempt: resolves with the answer to INFO, or rejects with the reason. The client then tries again, without this check. */
  readonly opened: Promise<string>;
  /** The reason that there is no connection now. */
  readonly problem: () => CryptodlError;
  /** Ends the connection. Commands without an answer are rejected. */
  readonly close: () => void;
}

const CONNECT_MS = 5000;
/** The longest wait for an answer of Redis. */
export const ANSWER_MS = 1000;
/** The commands of BullMQ that wait for jobs and events are answered after ten seconds at the latest. */
const LONGEST_ANSWER_MS = 30_000;
const SHORTEST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 500;

const OPTIONS = {
  limit: { enableOfflineQueue: false, maxRetriesPerRequest: 0, commandTimeout: ANSWER_MS },
  // BullMQ requires null.
  queue: { maxRetriesPerRequest: null, socketTimeout: LONGEST_ANSWER_MS },
} as const;

/** Begins to connect. Rejects only with `package-missing`. `address` is a value of `--redis`. */
export async function openRedis(address: string, use: RedisUse): Promise<RedisConnection> {
  const { Redis } = await loadOptional('--redis', ['ioredis'], () => import('ioredis'));
  const client = new Redis(address, {
    ...OPTIONS[use],
    lazyConnect: true,
    // The shapes of RESP 2 are the same on all servers.
    protocol: 2,
    disableClientInfo: true,
    connectionName: 'cryptodl',
    connectTimeout: CONNECT_MS,
    retryStrategy: (times) => Math.min(times * SHORTEST_RETRY_MS, LONGEST_RETRY_MS),
    // After a failover, the address may lead to another server than this one, which has become a replica.
    reconnectOnError: ({ message }) => message.includes('READONLY'),
  });
  // The first error of an attempt is its cause, the others are its effects.
  let last: unknown;
  let isNew = true;
  client.on('reconnecting', () => {
    isNew = true;
  });
  client.on('error', (error: unknown) => {
    if (isNew) last = error;
    isNew = false;
  });
  const problem = (): CryptodlError => redisProblem(address, last);
  const opened = client
    .connect()
    .catch(() => {
      throw problem();
    })
    .then(() => checkServer(client, address));
  opened.catch(() => undefined);
  return { client, opened, problem, close: () => client.disconnect() };
}

/** A usable connection. Rejects if the first attempt fails, and then tries no further one. */
export async function connectRedis(address: string, use: RedisUse): Promise<RedisConnection> {
  const connection = await openRedis(address, use);
  try {
    await connection.opened;
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Resolves with the answer to INFO. A user of an ACL may not be allowed to use it; then the answer is empty, and the server is used unchecked. */
async function checkServer(client: Redis, address: string): Promise<string> {
  let info: string;
  try {
    info = await client.info();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('NOPERM')) return '';
    throw redisProblem(address, error);
  }
  // The client uses database 0 when the server refuses another one.
  const { db = 0 } = client.options;
  if (db !== 0)
    await client.select(db).catch((error: unknown) => {
      throw redisProblem(address, error);
    });
  const problem = refusedServer(info);
  if (problem !== undefined)
    throw new CryptodlError('redis-refused', `Redis at ${shownRedis(address)}: ${problem}`);
  return info;
}
