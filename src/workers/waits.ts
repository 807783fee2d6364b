/**
 * The jobs for which a command with `--wait` waits, and the counts of those that have ended, in Redis. A job is counted once for each
 * command that waits for it, however often it runs and whichever command enqueued it first.
 */
import { randomUUID } from 'node:crypto';
import type { RedisClient } from '../redis/connection.js';
import { queueKey } from './bullmq.js';
import type { Counts } from './tally-fields.js';

/** The keys of a command that was killed vanish after this time. */
const KEPT_SECONDS = 3600;

/** KEYS: the waits · ARGV: beginning of the keys of a wait, job, SREM at the end of the job or else SISMEMBER, then names and numbers. */
const COUNT = `
for _, wait in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local base = ARGV[1] .. wait
  if redis.call('EXISTS', base .. ':counts') == 0 then
    redis.call('SREM', KEYS[1], wait)
  elseif redis.call(ARGV[3], base .. ':pending', ARGV[2]) == 1 then
    for i = 4, #ARGV, 2 do redis.call('HINCRBY', base .. ':counts', ARGV[i], ARGV[i + 1]) end
  end
end
return 0`;

/** Adds counts of a job that has not ended. */
export async function countPart(
  client: RedisClient,
  queue: string,
  job: string,
  counts: Counts,
): Promise<void> {
  await evalCounts(client, 'SISMEMBER', queue, job, counts);
}

/** Counts the end of a job in all commands that wait for it. */
export async function settle(client: RedisClient, queue: string, job: string, counts: Counts): Promise<void> {
  await evalCounts(client, 'SREM', queue, job, counts);
}

async function evalCounts(
  client: RedisClient,
  find: 'SISMEMBER' | 'SREM',
  queue: string,
  job: string,
  counts: Counts,
): Promise<void> {
  const fields = Object.entries(counts).flatMap(([name, count]) => [name, String(Math.round(count))]);
  const [waits, wait] = [queueKey(queue, 'waits'), queueKey(queue, 'wait', '')];
  await client.eval(COUNT, 1, waits, wait, job, find, ...fields);
}

export class Wait {
  readonly #client: RedisClient;
  readonly #waits: string;
  readonly #id = randomUUID();
  readonly #pending: string;
  readonly #counts: string;

  constructor(client: RedisClient, queue: string) {
    this.#client = client;
    this.#waits = queueKey(queue, 'waits');
    this.#pending = queueKey(queue, 'wait', `${this.#id}:pending`);
    this.#counts = queueKey(queue, 'wait', `${this.#id}:counts`);
  }

  /** To be called before the first `add`. */
  async begin(): Promise<void> {
    await this.#client
      .multi()
      .hset(this.#counts, 'jobs', 0)
      .expire(this.#counts, KEPT_SECONDS)
      .sadd(this.#waits, this.#id)
      .exec();
  }

  /** To be called before the jobs are added to the queue, because a worker may be fast. */
  async add(jobs: readonly string[]): Promise<void> {
    await this.#client.sadd(this.#pending, ...jobs);
    await this.#keep();
  }

  /** The jobs that have not ended, and the counts of the others. Undefined if the server has lost them. */
  async state(): Promise<{ pending: number; counts: Readonly<Record<string, string>> } | undefined> {
    await this.#keep();
    const [pending, counts] = await Promise.all([
      this.#client.scard(this.#pending),
      this.#client.hgetall(this.#counts),
    ]);
    return counts['jobs'] === undefined ? undefined : { pending, counts };
  }

  /** Some of the jobs that have not ended. */
  sample(most: number): Promise<string[]> {
    return this.#client.srandmember(this.#pending, most);
  }

  async end(): Promise<void> {
    await this.#client.multi().srem(this.#waits, this.#id).del(this.#pending, this.#counts).exec();
  }

  async #keep(): Promise<void> {
    await this.#client.multi().expire(this.#pending, KEPT_SECONDS).expire(this.#counts, KEPT_SECONDS).exec();
  }
}
