/**
 * An egress group: programs on several machines behind one public address. They share their budgets and bans in Redis
 * (docs/adr/0016). Without Redis, each takes its share of the limits alone.
 */
import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../model/clock.js';
import type { CryptodlError } from '../../model/errors.js';
import { countText } from '../../model/units.js';
import { openRedis, type RedisConnection } from '../redis/connection.js';
import { redisProblem } from '../redis/redis-errors.js';
import { SharedResources } from '../../model/shared-resources.js';
import { CALL, MISSING_MS, type GroupAnswer, type ToldBan, type ToldWindow } from './group-script.js';

export interface GroupOptions {
  /** A value of `--redis`. */
  readonly address: string;
  readonly name: string;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  /** Called when the last run leaves. */
  readonly onLeft?: () => void;
}

/** The permits of a bucket, as this member knows them. */
interface GroupCounter {
  /** The present window; undefined if there is none. */
  tell(): ToldWindow | undefined;
  /** Takes the count that Redis answers to what was told. */
  learn(told: ToldWindow, used: number): void;
  /** The group was joined or lost. */
  wake(): void;
}

interface GroupBan {
  /** Bucket and host. */
  readonly place: string;
  /** On the monotonic clock of this machine. */
  readonly untilMs: number;
  readonly why: string;
}

/** Milliseconds between two signs of life of a member. A ban reaches all members within this time. */
const BEAT_MS = 500;

/** The share of a program that has never seen its group is the limit divided by this number. */
const UNKNOWN_MEMBERS = 10;

export class EgressGroup {
  /** Names the member, also within its process. */
  readonly id = randomUUID().slice(0, 13);
  readonly #counters = new Set<GroupCounter>();
  readonly #banListeners = new Set<(ban: GroupBan) => void>();
  #connection: RedisConnection | undefined;
  #opened: Promise<void> = Promise.resolve();
  #users = 0;
  #hasLeft = false;
  /** The members of the last answer, this one included; 0 before the first answer. */
  #members = 0;
  /** The bans of the last answer, and those that Redis does not know yet. */
  #bans: readonly GroupBan[] = [];
  #untold: readonly GroupBan[] = [];
  /** Time of Redis minus monotonic time of this machine; undefined before the first answer. */
  offsetMs: number | undefined;
  #lost: { readonly atMs: number; readonly problem: CryptodlError } | undefined;
  /** The server will never accept this program. */
  #refusal: CryptodlError | undefined;
  #beat: Timer | undefined;

  constructor(private readonly options: GroupOptions) {}

  /** The first run begins to connect. Each run that enters must leave. */
  enter(): void {
    this.#users += 1;
    if (this.#users > 1) return;
    this.#opened = this.#open();
    this.#opened.catch(() => undefined);
  }

  /** The last run that leaves tells the others, so that they no longer keep permits for this program. The group is of no use after that. */
  async leave(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    const { isJoined } = this;
    this.#hasLeft = true;
    this.options.onLeft?.();
    this.#beat?.cancel();
    if (isJoined)
      await this.#connection?.client.hdel(this.#redisKey, `member ${this.id}`).catch(() => undefined);
    this.#connection?.close();
  }

  /** Resolves when the group is joined, or Redis cannot be reached. Rejects if Redis will never accept this program. */
  opened(): Promise<void> {
    return this.#opened;
  }

  /** `members`: the programs that were seen last, this one included. `isShared`: false while Redis cannot be used. */
  get state() {
    return { name: this.options.name, members: this.size, isShared: this.isJoined };
  }

  get isJoined(): boolean {
    return this.#members > 0 && this.#lost === undefined && !this.#hasLeft;
  }

  /** The number by which this program divides the limits while Redis cannot be used. */
  get size(): number {
    return this.#members || UNKNOWN_MEMBERS;
  }

  /** The monotonic time from which this program takes its share alone; undefined while Redis is used. Before it, the others do not know of the loss. */
  get aloneFromMs(): number | undefined {
    return this.#lost && this.#lost.atMs + MISSING_MS;
  }

  /** Each call tells the window of the counter: a Redis that has lost its data gets them from the members. */
  watch(counter: GroupCounter): void {
    this.#counters.add(counter);
  }

  /** Calls back for each ban of each answer. */
  onBan(listener: (ban: GroupBan) => void): void {
    this.#banListeners.add(listener);
  }

  get bans(): readonly GroupBan[] {
    const now = this.options.clock.monotonic();
    return this.#bans.filter(({ untilMs }) => untilMs > now);
  }

  /** Tells what this program knows, as a sign of life, and may ask for permits. Rejects if Redis fails, and the group is then lost, or if all runs have left it. */
  async call(ask?: Pick<ToldWindow, 'key' | 'weight' | 'limit'>): Promise<GroupAnswer[4]> {
    const counters = [...this.#counters].flatMap((counter) => {
      const window = counter.tell();
      return window === undefined ? [] : [{ counter, window }];
    });
    const windows = counters.map(({ window }) => (window.key === ask?.key ? { ...window, ...ask } : window));
    const untold = this.#untold;
    const now = this.options.clock.monotonic();
    const bans = untold.map(({ place, untilMs, why }): ToldBan => [place, Math.ceil(untilMs - now), why]);
    try {
      const { client } = this.#connected();
      const answer = await client.eval(CALL, 1, this.#redisKey, this.id, JSON.stringify({ windows, bans }));
      const [time, members, known, counts, result] = answer as GroupAnswer;
      for (const [at, { counter, window }] of counters.entries()) counter.learn(window, counts[at] ?? 0);
      this.#untold = this.#untold.filter((ban) => !untold.includes(ban));
      this.#learnBans(known);
      this.#onJoined(time, members);
      return result;
    } catch (error) {
      this.#onLost(error);
      throw error;
    }
  }

  /** Tells the group of a ban that this program got. Resolves also if Redis cannot be used; the ban is then told when Redis answers again. */
  async ban(place: string, leftMs: number, why: string): Promise<void> {
    // Redis refuses JSON with a half of a character.
    const text = Buffer.from(why).toString();
    const untilMs = this.options.clock.monotonic() + leftMs;
    this.#untold = [...this.#untold, { place, untilMs, why: text }];
    await this.call().catch(() => undefined);
  }

  /** Removes the bans of these places. Rejects if Redis cannot be used. */
  async clearBans(isCleared: (place: string) => boolean): Promise<string[]> {
    await this.#opened;
    if (this.#lost !== undefined) throw this.#lost.problem;
    const places = this.#bans.map(({ place }) => place).filter(isCleared);
    this.#bans = this.#bans.filter(({ place }) => !isCleared(place));
    const fields = places.map((place) => `ban ${place}`);
    if (fields.length > 0) await this.#connected().client.hdel(this.#redisKey, ...fields);
    return places;
  }

  async #open(): Promise<void> {
    const connection = await openRedis(this.options.address, 'limit');
    this.#connection = connection;
    // All runs may have left the group meanwhile.
    if (this.#hasLeft) {
      connection.close();
      return;
    }
    try {
      await connection.opened;
    } catch (error) {
      if ((error as CryptodlError).code === 'redis-refused') throw error;
    }
    await this.#live();
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /** Calls again and again, until all runs have left the group. Never rejects. */
  async #live(): Promise<void> {
    await this.call().catch(() => undefined);
    if (this.#hasLeft) return;
    this.#beat = this.options.clock.timer(BEAT_MS, () => void this.#live(), { keepsAlive: false });
  }

  #learnBans(bans: readonly ToldBan[]): void {
    const now = this.options.clock.monotonic();
    this.#bans = bans.map(([place, leftMs, why]) => ({ place, untilMs: now + leftMs, why }));
    for (const ban of this.#bans) for (const listener of this.#banListeners) listener(ban);
  }

  #onJoined(time: number, members: number): void {
    const { clock, warn, name } = this.options;
    const wasJoined = this.isJoined;
    this.offsetMs = time - clock.monotonic();
    this.#members = members;
    if (this.#lost !== undefined) {
      this.#lost = undefined;
      warn(`Redis answers again: the group ${name} (${countText(members, 'program')}) shares its limits`);
    }
    if (!wasJoined) for (const counter of this.#counters) counter.wake();
  }

  #connected(): RedisConnection {
    if (this.#connection === undefined || this.#hasLeft) throw new Error('all runs have left the group');
    return this.#connection;
  }

  /** The keys of the group begin with it. */
  get #redisKey(): string {
    return `cryptodl:{${this.options.name}}`;
  }

  #onLost(error: unknown): void {
    if (this.#connection === undefined || this.#hasLeft || this.#lost !== undefined) return;
    const { clock, warn, name, address } = this.options;
    // ioredis names the reason of a lost connection only in its events.
    const isVague = /writeable|closed/.test(String(error));
    const problem = isVague ? this.#connection.problem() : redisProblem(address, error);
    this.#lost = { atMs: clock.monotonic(), problem };
    // Redis may lose its data before it answers again.
    this.#untold = [...this.#untold, ...this.bans];
    if (this.#members === 0 && problem.code === 'redis-refused') {
      this.#refusal = problem;
      return;
    }
    const share =
      this.#members === 0
        ? `one tenth of each limit, because the size of the group ${name} is not known`
        : `1/${this.size} of each limit, its share in the group ${name}`;
    warn(`${problem.message}; until it answers, this program takes ${share}, from the next window on`);
    for (const counter of this.#counters) counter.wake();
  }
}

/** The group of the options; undefined without `--egress-group` or `--redis`. The runs of a process share it. */
export function egressGroupOf(
  { redis: address, egressGroup: name }: Partial<Record<'redis' | 'egressGroup', string | undefined>>,
  options: Pick<GroupOptions, 'clock' | 'warn'>,
  common = new SharedResources(),
): EgressGroup | undefined {
  if (name === undefined || address === undefined) return undefined;
  const resource = `egress group ${address} ${name}`;
  const onLeft = (): void => common.forget(resource);
  return common.once(resource, () => new EgressGroup({ ...options, address, name, onLeft }));
}
