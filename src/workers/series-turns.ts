/**
 * Lets one job at a time write a series, if its lake is in a bucket without conditional writes: there, two writers would lose each other's
 * lines of a manifest. A series belongs to a job for as long as BullMQ renews the lease of the job, so a killed worker keeps none.
 */
import type { RedisClient } from '../redis/connection.js';
import { queueKey } from './bullmq.js';

/** Longer than a job takes. */
const KEPT_MS = 7 * 24 * 3_600_000;

/** KEYS: the series · ARGV: the key of the lease of the job, its token, the time in milliseconds that the answer is kept. */
const TAKE = `
local held = redis.call('HMGET', KEYS[1], 'lease', 'token')
if held[1] and held[1] ~= ARGV[1] and redis.call('GET', held[1]) == held[2] then return 0 end
redis.call('HSET', KEYS[1], 'lease', ARGV[1], 'token', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`;

/** KEYS and ARGV as above. */
const RELEASE = `
local held = redis.call('HMGET', KEYS[1], 'lease', 'token')
if held[1] == ARGV[1] and held[2] == ARGV[2] then redis.call('DEL', KEYS[1]) end
return 0`;

/** The lease of a job: its key in Redis, and its value. */
export interface JobLease {
  readonly key: string;
  readonly token: string;
}

export class SeriesTurns {
  readonly #client: RedisClient;
  readonly #queue: string;
  /** By lake: whether its series are written in turns. */
  readonly #inTurns = new Map<string, Promise<boolean>>();

  constructor(client: RedisClient, queue: string) {
    this.#client = client;
    this.#queue = queue;
  }

  /** Resolves with false if another job has its turn. `needsTurns`: called once for each lake. */
  async take(
    lake: string,
    series: string,
    lease: JobLease,
    needsTurns: () => Promise<boolean>,
  ): Promise<boolean> {
    const inTurns = this.#inTurns.get(lake) ?? needsTurns();
    this.#inTurns.set(lake, inTurns);
    try {
      if (!(await inTurns)) return true;
    } catch (error) {
      this.#inTurns.delete(lake);
      throw error;
    }
    return (await this.#eval(TAKE, series, lease, String(KEPT_MS))) === 1;
  }

  async release(series: string, lease: JobLease): Promise<void> {
    await this.#eval(RELEASE, series, lease);
  }

  #eval(script: string, series: string, { key, token }: JobLease, ...more: string[]): Promise<unknown> {
    return this.#client.eval(script, 1, queueKey(this.#queue, 'turn', series), key, token, ...more);
  }
}
