/**
 * An egress group: programs on several machines behind one public address. They share their budgets and bans in Redis
 * (docs/adr/0016). Without Redis, each takes its share of the limits alone.
 */
import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../model/clock.js';
import type { CryptodlError } from '../../model/errors.js';
import { countText } from '../../model/units.js';
import { openRedis } from '../redis/connection.js';
import type { RedisConnection } from '../redis/connection.js';
import { redisProblem } from '../redis/redis-errors.js';
import type { GroupState } from '../host-states.js';
import { SharedResources } from '../../model/io.js';
import { CALL, MISSING_MS } from './group-script.js';
import type { GroupAnswer, Told, ToldBan, ToldWindow } from './group-script.js';

export interface GroupOptions {
  /** A value of `--redis`. */
  readonly address: string;
  readonly name: string;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
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

/** Milliseconds between two signs of life of a member. A ban reaches all members within this time. */
const BEAT_MS = 500;

/** The share of a program that has never seen its group is the limit divided by this number. */
const UNKNOWN_MEMBERS = 10;

export class EgressGroup {
  readonly #options: GroupOptions;
  readonly #id = randomUUID().slice(0, 13);
  #connection: RedisConnection | undefined;
  readonly #counters = new Set<GroupCounter>();
  readonly bans: GroupBans;
  #opened: Promise<void> = Promise.resolve();
  #users = 0;
  #isConnecting = false;
  /** The sizes of the members of the last answer, this one included. */
  #members: ReadonlyMap<string, number> = new Map();
  /** The size that Redis knows of this member, unless a later call arrived and its answer was lost. */
  #toldSize = 0;
  /** Time of Redis minus monotonic time of this machine; undefined before the first answer. */
  offsetMs: number | undefined;
  #lost: { readonly at: number; readonly problem: CryptodlError } | undefined;
  /** The server will never accept this program. */
  #refusal: CryptodlError | undefined;
  #beat: Timer | undefined;

  constructor(options: GroupOptions) {
    this.#options = options;
    this.bans = new GroupBans(options.clock);
  }

  /** Begins to connect, unless another run of this process has the group open. The caller must leave it. */
  enter(): void {
    this.#users += 1;
    if (this.#users > 1 || this.#isConnecting) return;
    this.#opened = this.#open();
    this.#opened.catch(() => undefined);
  }

  /** The last run that leaves tells the others, so that they no longer keep permits for this program. */
  async leave(): Promise<void> {
    this.#users -= 1;
    const [connection, isJoined] = [this.#connection, this.isJoined];
    if (this.#users > 0 || connection === undefined) return;
    // Another run may enter before Redis has answered.
    this.#connection = undefined;
    this.#beat?.cancel();
    if (isJoined) await connection.client.hdel(this.#redisKey, `member ${this.#id}`).catch(() => undefined);
    connection.close();
  }

  /** Resolves when the group is joined, or Redis cannot be reached. Rejects if Redis will never accept this program. */
  opened(): Promise<void> {
    return this.#opened;
  }

  /** Names the group within the process. */
  get key(): string {
    return `${this.#options.address} ${this.#options.name}`;
  }

  get state(): GroupState {
    const members = this.#members.size || UNKNOWN_MEMBERS;
    return { name: this.#options.name, members, isShared: this.isJoined };
  }

  get isJoined(): boolean {
    return this.#connection !== undefined && this.#lost === undefined && this.#members.size > 0;
  }

  /** The number by which this program divides the limits while Redis cannot be used: the others keep at least that share for it. */
  get size(): number {
    if (this.isJoined) return this.#members.size;
    return Math.max(this.#toldSize, this.#members.size) || UNKNOWN_MEMBERS;
  }

  /**
   * The monotonic time from which this program may take its share alone; undefined while Redis is used. Before that, the others
   * do not know that it is missing.
   */
  get aloneFrom(): number | undefined {
    return this.#lost && this.#lost.at + MISSING_MS;
  }

  /** Each call tells the window of the counter: a Redis that has lost its data gets them from the members. */
  watch(counter: GroupCounter): void {
    this.#counters.add(counter);
  }

  /**
   * Tells what this program knows, and perhaps asks for permits. A sign of life. Rejects if Redis cannot be used, and the group is
   * then lost; or if all runs have left the group.
   */
  async call(ask?: Pick<ToldWindow, 'key' | 'weight' | 'limit'>): Promise<GroupAnswer[4]> {
    const connection = this.#connected();
    const counters = [...this.#counters].flatMap((counter) => {
      const window = counter.tell();
      return window === undefined ? [] : [{ counter, window }];
    });
    const windows = counters.map(({ window }) => (window.key === ask?.key ? { ...window, ...ask } : window));
    const [size, untold] = [this.size, this.bans.untold];
    const told: Told = { size, others: Object.fromEntries(this.#members), windows, ...this.bans.told };
    try {
      const text = JSON.stringify(told);
      const answer: unknown = await connection.client.eval(CALL, 1, this.#redisKey, this.#id, text);
      if (connection !== this.#connection) throw new Error('all runs have left the group');
      if (!Array.isArray(answer)) throw new Error('the answer is not a list');
      const [time, members, bans, counts, result] = answer as unknown as GroupAnswer;
      for (const [at, { counter, window }] of counters.entries()) counter.learn(window, counts[at] ?? 0);
      this.bans.learn(bans, untold);
      this.#toldSize = size;
      this.#onJoined(time, members);
      return result;
    } catch (error) {
      if (connection === this.#connection) this.#onLost(error, connection);
      throw error;
    }
  }

  /** Tells the group of a ban. Resolves also if Redis cannot be used; the ban is then told when Redis answers again. */
  async ban(place: string, leftMs: number, why: string): Promise<void> {
    this.bans.add(place, leftMs, why);
    await this.call().catch(() => undefined);
  }

  /** Removes the bans of these places. Rejects if Redis cannot be used. */
  async clearBans(isCleared: (place: string) => boolean): Promise<string[]> {
    await this.#opened;
    if (this.#lost !== undefined) throw this.#lost.problem;
    const places = this.bans.remove(isCleared);
    const fields = places.map((place) => `ban ${place}`);
    if (fields.length > 0) await this.#connected().client.hdel(this.#redisKey, ...fields);
    return places;
  }

  async #open(): Promise<void> {
    this.#lost = undefined;
    this.#members = new Map();
    this.#isConnecting = true;
    const connection = await openRedis(this.#options.address, 'limit').finally(() => {
      this.#isConnecting = false;
    });
    // All runs may have left the group meanwhile.
    if (this.#users === 0) {
      connection.close();
      return;
    }
    this.#connection = connection;
    try {
      await connection.opened;
    } catch (error) {
      if ((error as CryptodlError).code === 'redis-refused') throw error;
    }
    if (connection === this.#connection) await this.#live();
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /** Calls again and again, until all runs have left the group. Never rejects. */
  async #live(): Promise<void> {
    await this.call().catch(() => undefined);
    if (this.#connection === undefined) return;
    // Another run may have entered meanwhile.
    this.#beat?.cancel();
    this.#beat = this.#options.clock.timer(BEAT_MS, () => void this.#live(), { keepsAlive: false });
  }

  #onJoined(time: number, members: GroupAnswer[1]): void {
    const { clock, warn, name } = this.#options;
    const wasJoined = this.isJoined;
    this.offsetMs = time - clock.monotonic();
    this.#members = new Map(members);
    if (this.#lost !== undefined) {
      this.#lost = undefined;
      warn(
        `Redis answers again: the group ${name} (${countText(members.length, 'program')}) shares its limits`,
      );
    }
    if (!wasJoined) for (const counter of this.#counters) counter.wake();
  }

  #connected(): RedisConnection {
    if (this.#connection === undefined) throw new Error('all runs have left the group');
    return this.#connection;
  }

  /** The keys of the group begin with it. */
  get #redisKey(): string {
    return `cryptodl:{${this.#options.name}}`;
  }

  #onLost(error: unknown, connection: RedisConnection): void {
    if (this.#lost !== undefined) return;
    const { clock, warn, name, address } = this.#options;
    // ioredis names the reason of a lost connection only in its events.
    const isVague = /writeable|closed/.test(String(error));
    const problem = isVague ? connection.problem() : redisProblem(address, error);
    this.#lost = { at: clock.monotonic(), problem };
    if (this.#members.size === 0 && problem.code === 'redis-refused') {
      this.#refusal = problem;
      return;
    }
    const share =
      this.#members.size === 0
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
  return common.once(`egress group ${address} ${name}`, () => new EgressGroup({ ...options, address, name }));
}

interface GroupBan {
  /** Bucket and host. */
  readonly place: string;
  /** On the monotonic clock of this machine. */
  readonly until: number;
  readonly why: string;
}

/** The bans of the group, as this member knows them. */
class GroupBans {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #listeners = new Set<(ban: GroupBan) => void>();
  #bans = new Map<string, GroupBan>();
  /** Bans that this program got and that Redis does not know yet. */
  untold: readonly GroupBan[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Calls back for each ban of each answer. */
  onBan(listener: (ban: GroupBan) => void): void {
    this.#listeners.add(listener);
  }

  /** The bans at this moment. */
  get current(): readonly GroupBan[] {
    const now = this.#clock.monotonic();
    return [...this.#bans.values()].filter(({ until }) => until > now);
  }

  /** A ban that this program got. */
  add(place: string, leftMs: number, why: string): void {
    // Redis refuses JSON with a half of a character.
    const text = Buffer.from(why).toString();
    this.untold = [...this.untold, { place, until: this.#clock.monotonic() + leftMs, why: text }];
  }

  get told(): Pick<Told, 'bans' | 'knownBans'> {
    const now = this.#clock.monotonic();
    const tell = ({ place, until, why }: GroupBan): ToldBan => [place, Math.ceil(until - now), why];
    return { bans: this.untold.map(tell), knownBans: this.current.map(tell) };
  }

  /** Takes the list of Redis, which now knows the bans that were told. */
  learn(bans: GroupAnswer[2], told: readonly GroupBan[]): void {
    const now = this.#clock.monotonic();
    this.#bans = new Map(bans.map(([place, leftMs, why]) => [place, { place, until: now + leftMs, why }]));
    this.untold = this.untold.filter((ban) => !told.includes(ban));
    for (const ban of this.#bans.values()) for (const listener of this.#listeners) listener(ban);
  }

  /** Removes bans. Returns their places. */
  remove(isRemoved: (place: string) => boolean): string[] {
    const places = [...this.#bans.keys()].filter(isRemoved);
    for (const place of places) this.#bans.delete(place);
    return places;
  }
}
