/** The connection of an egress group: runs its scripts. */
import { CryptodlError } from '../../model/errors.js';
import { openRedis } from '../../redis/connection.js';
import type { RedisConnection } from '../../redis/connection.js';
import { redisProblem } from '../../redis/redis-errors.js';

export class GroupRedis {
  readonly #address: string;
  /** The keys of the group begin with it. */
  readonly #key: string;
  #connection: RedisConnection | undefined;

  constructor(address: string, name: string) {
    this.#address = address;
    this.#key = `cryptodl:{${name}}`;
  }

  /** Resolves also if Redis cannot be reached now. Rejects if it will never accept this program. */
  async open(): Promise<void> {
    const connection = await openRedis(this.#address, 'limit');
    this.#connection = connection;
    try {
      await connection.opened;
    } catch (error) {
      if (error instanceof CryptodlError && error.code === 'redis-refused') throw error;
    }
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  /** Resolves with the list that the script returns. */
  async run(script: string, words: readonly (string | number)[]): Promise<readonly unknown[]> {
    const answer: unknown = await this.#client().eval(script, 1, this.#key, ...words);
    if (!Array.isArray(answer)) throw new Error('the answer is not a list');
    return answer;
  }

  async removeBans(places: readonly string[]): Promise<void> {
    await this.#client().hdel(`${this.#key}:bans`, ...places);
  }

  /** The reason that Redis cannot be used. ioredis names the reason of a lost connection only in its events. */
  problem(error?: unknown): CryptodlError {
    const isVague =
      error === undefined || /writeable|closed/.test(error instanceof Error ? error.message : '');
    if (isVague && this.#connection !== undefined) return this.#connection.problem();
    return redisProblem(this.#address, error);
  }

  #client(): RedisConnection['client'] {
    if (this.#connection === undefined) throw new Error('there is no connection');
    return this.#connection.client;
  }
}
