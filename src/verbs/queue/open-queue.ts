/** Opens a queue for a verb: connects, and checks that the server keeps the jobs. */
import { CryptodlError, usage } from '../../model/errors.js';
import type { Clock } from '../../model/clock.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { watchSignals, type Io } from '../../model/io.js';
import { connectRedis } from '../../http/redis/connection.js';
import { redisProblem, shownRedis } from '../../http/redis/redis-errors.js';
import type { Options } from '../../plan/options/flags.js';
import { printLines } from '../../text/printable.js';
import { loadBullMq, type JobQueue } from './bullmq.js';

/** The jobs that are read at once. */
export const JOBS_PAGE = 1000;

export type OpenQueue = Awaited<ReturnType<typeof openQueue>>;

type QueueOptions = Options<'queue' | 'redis'>;

/** The address of the server. Throws a usage error without `--redis`. */
export function redisAddress({ redis }: QueueOptions, verb: string): string {
  if (redis !== undefined) return redis;
  throw usage(
    `${verb} needs the Redis server of the queue`,
    `cryptodl ${verb} --redis redis://127.0.0.1:6379`,
  );
}

/** `warn`: takes one line about a server that may lose jobs. Rejects with an error about packages, connection or server. */
export async function openQueue(options: QueueOptions, verb: string, warn: (message: string) => void) {
  const address = redisAddress(options, verb);
  const name = options.queue;
  const bullmq = await loadBullMq();
  const connection = await connectRedis(address, 'queue');
  try {
    checkDurability(await connection.opened, address, warn);
    // --queue does not accept `~`.
    const [queue, converting] = [name, `${name}~convert`].map((each) =>
      bullmq.openQueue(each, connection),
    ) as [JobQueue, JobQueue];
    await Promise.all([queue.waitUntilReady(), converting.waitUntilReady()]);
    return {
      name,
      address,
      connection,
      queue,
      /** The jobs whose zips are fetched and wait for their conversion. */
      converting,
      bullmq,
      close: async () => {
        // Without a server, the farewell of BullMQ would wait for the next connection.
        if (connection.client.status === 'ready') await Promise.all([queue.close(), converting.close()]);
        connection.close();
      },
    };
  } catch (error) {
    connection.close();
    throw error instanceof CryptodlError ? error : redisProblem(address, error);
  }
}

/** An open queue for a command, whose warnings are printed once each. */
export interface CommandQueue {
  readonly open: OpenQueue;
  readonly warn: (message: string) => void;
  readonly signals: ReturnType<typeof watchSignals>;
}

/** Opens the queue for `act`, which SIGINT and SIGTERM abort, and closes it. */
export async function withQueue(
  options: QueueOptions,
  verb: string,
  io: Io,
  act: (queue: CommandQueue) => Promise<ExitCode>,
): Promise<ExitCode> {
  const told = new Set<string>();
  const warn = (message: string): void => {
    if (told.has(message)) return;
    told.add(message);
    printLines(io.stderr, [`warning: ${message}`]);
  };
  const open = await openQueue(options, verb, warn);
  const signals = watchSignals(io);
  const ended = new AbortController();
  try {
    const acting = act({ open, warn, signals });
    // A worker waits for the server as long as it takes, and gives its jobs back after a signal.
    if (verb === 'worker') return await acting;
    return await Promise.race([acting, watchLoss(open, io.clock, signals.signal, ended.signal)]);
  } catch (error) {
    const signal = signals.signalled();
    if (signal !== undefined && error === signals.signal.reason) return exitCode({ signal });
    throw error instanceof Error && error.name === 'ReplyError' ? redisProblem(open.address, error) : error;
  } finally {
    ended.abort();
    signals.release();
    await open.close();
  }
}

const WATCH_MS = 1000;

/** Rejects when the server has been away for too long, and some time after a signal, with its reason; also when `until` aborts. */
async function watchLoss(
  { connection: { client, problem } }: OpenQueue,
  clock: Clock,
  signal: AbortSignal,
  until: AbortSignal,
): Promise<never> {
  let [awayMs, signalledMs] = [0, 0];
  for (;;) {
    await clock.sleep(WATCH_MS, until);
    awayMs = client.status === 'ready' ? 0 : awayMs + WATCH_MS;
    // Commands of BullMQ wait for the next connection. A server that is away for so long is given up.
    if (awayMs >= 2 * 60_000) throw problem();
    signalledMs += signal.aborted ? WATCH_MS : 0;
    // After a signal, a command that the server does not answer is left.
    if (signalledMs >= 5000) throw signal.reason;
  }
}

/**
 * Refuses a server that removes keys when its memory is full: jobs would vanish one by one. Warns of a server without a log on disk:
 * after its restart, the queue is empty, and the same command fills it again.
 */
function checkDurability(info: string, address: string, warn: (message: string) => void): void {
  const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
  if (policy !== 'noeviction')
    throw new CryptodlError(
      'redis-refused',
      `Redis at ${shownRedis(address)} removes keys when its memory is full (maxmemory-policy ${policy}): it would lose jobs`,
      { hint: 'redis-cli CONFIG SET maxmemory-policy noeviction' },
    );
  if (/^aof_enabled:0/m.test(info))
    warn(
      `Redis at ${shownRedis(address)} has no append-only file: its restart may empty the queue, and the same enqueue command then fills it again; to keep the queue: redis-cli CONFIG SET appendonly yes`,
    );
}

/** The flags with which another command works on the same queue. */
export const queueWords = ({ name }: OpenQueue): string =>
  `--redis URL${name === 'main' ? '' : ` --queue ${name}`}`;
