/**
 * An egress group: programs on several machines behind one public address. They share their budgets and bans in Redis
 * (docs/adr/0015). Without Redis, each takes its share of the limits alone.
 */
import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError, LONGEST_WAIT_MS } from '../../model/errors.js';
import { countText } from '../../model/units.js';
import { openRedis } from '../../redis/connection.js';
import type { RedisConnection } from '../../redis/connection.js';
import { isForeignData, redisProblem } from '../../redis/redis-errors.js';
import type { GroupState } from '../host-states.js';
import { SharedResources } from '../../model/io.js';
import { BAN, GIVE_BACK, JOIN, LEAVE, MISSING_MS, RAISE, TAKE } from './group-scripts.js';

export interface GroupOptions {
  /** A value of `--redis`. */
  readonly address: string;
  readonly name: string;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** A window of a bucket. */
export interface GroupWindow {
  readonly bucket: string;
  readonly windowMs: number;
  readonly window: number;
}

/** The permits of a window, as a member knows them. */
interface KnownWindow extends GroupWindow {
  /** Permits that this member took. */
  readonly own: number;
  /** Permits that the group or the venue counted. */
  readonly used: number;
}

/** `full`: too few permits are left. `soon`: the permits are kept for others, or Redis must be joined again. */
export interface GroupAnswer {
  readonly result: 'taken' | 'full' | 'soon';
  readonly used: number;
}

/** Scripts that find data of another program find them again, so the group is joined again only after this time. Milliseconds. */
const FOREIGN_MS = 60_000;

/** Milliseconds between two signs of life of a member. A ban reaches all members within this time. */
const BEAT_MS = 500;

/** The share of a program that has never seen its group is the limit divided by this number. */
const UNKNOWN_MEMBERS = 10;

export class EgressGroup {
  readonly #options: GroupOptions;
  readonly #id = randomUUID().slice(0, 13);
  #connection: RedisConnection | undefined;
  readonly #listeners = new Set<() => void>();
  readonly bans: GroupBans;
  readonly #known = new Map<string, () => KnownWindow>();
  #opened: Promise<void> = Promise.resolve();
  #users = 0;
  #isConnecting = false;
  #isJoined = false;
  #epoch = '';
  #members: readonly string[] = [];
  /** Time of Redis minus monotonic time of this machine. */
  #offsetMs: number | undefined;
  #lost: { readonly at: number; readonly problem: CryptodlError } | undefined;
  /** The server will never accept this program. */
  #refusal: CryptodlError | undefined;
  /** Monotonic time before which this program does not join. */
  #noJoinBefore = Number.NEGATIVE_INFINITY;
  #joining: Promise<void> | undefined;
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
    const [connection, wasJoined] = [this.#connection, this.#isJoined];
    if (this.#users > 0 || connection === undefined) return;
    // Another run may enter before Redis has answered.
    this.#connection = undefined;
    this.#isJoined = false;
    this.#beat?.cancel();
    if (wasJoined) await connection.client.eval(LEAVE, 1, this.#redisKey, this.#id).catch(() => undefined);
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
    return { name: this.#options.name, members: this.members, isShared: this.#isJoined };
  }

  get isJoined(): boolean {
    return this.#isJoined;
  }

  /** The number of programs among which the limits are divided while Redis cannot be used. */
  get members(): number {
    return this.#members.length === 0 ? UNKNOWN_MEMBERS : this.#members.length;
  }

  /**
   * The monotonic time from which this program may take its share alone; undefined while Redis is used. Before that, the others
   * do not know that it is missing.
   */
  get aloneFrom(): number | undefined {
    return this.#lost && this.#lost.at + MISSING_MS;
  }

  /** Time of Redis minus monotonic time of this machine; undefined before the first answer. */
  get offsetMs(): number | undefined {
    return this.#offsetMs;
  }

  /** `known` returns the current window of a bucket, NaN before the first: a Redis without data gets it from the members. */
  watch(bucket: string, known: () => KnownWindow, onChange: () => void): void {
    this.#known.set(bucket, known);
    this.#listeners.add(onChange);
  }

  /** Asks for permits. Rejects if Redis cannot be used; the group is then lost. */
  async take({ bucket, windowMs, window }: GroupWindow, weight: number, limit: number): Promise<GroupAnswer> {
    const [result, used] = await this.#run(TAKE, [
      this.#epoch,
      this.#id,
      bucket,
      windowMs,
      window,
      weight,
      limit,
    ]);
    if (result === 'taken' || result === 'full' || result === 'soon')
      return { result, used: Number(used) || 0 };
    // `lost` or `banned`: the answer to the next sign of life tells more.
    await this.#join();
    return { result: 'soon', used: 0 };
  }

  /** Tells the count of the venue, unless Redis cannot be used. */
  raise({ bucket, windowMs, window }: GroupWindow, used: number): void {
    if (this.#isJoined)
      this.#run(RAISE, [this.#epoch, bucket, windowMs, window, used]).catch(() => undefined);
  }

  /** Gives permits back, unless Redis cannot be used. */
  giveBack({ bucket, windowMs, window }: GroupWindow, weight: number): void {
    const words = [this.#epoch, this.#id, bucket, windowMs, window, weight];
    if (this.#isJoined) this.#run(GIVE_BACK, words).catch(() => undefined);
  }

  /** Tells the group of a ban. Resolves also if Redis cannot be used. */
  async ban(place: string, leftMs: number, why: string): Promise<void> {
    await this.#run(BAN, [place, Math.ceil(leftMs), why]).catch(() => undefined);
  }

  /** Removes the bans of these places. Rejects if Redis cannot be used. */
  async clearBans(isCleared: (place: string) => boolean): Promise<string[]> {
    await this.#opened;
    if (this.#lost !== undefined) throw this.#lost.problem;
    const places = this.bans.remove(isCleared);
    if (places.length > 0) await this.#connected().client.hdel(`${this.#redisKey}:bans`, ...places);
    return places;
  }

  async #open(): Promise<void> {
    this.#lost = undefined;
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
    if (connection === this.#connection) await this.#join();
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /** A sign of life. Joins the group again if Redis has lost it, or if this program has lost Redis. Never rejects. */
  #join(): Promise<void> {
    this.#joining ??= this.#tryJoin().finally(() => {
      this.#joining = undefined;
    });
    return this.#joining;
  }

  async #tryJoin(): Promise<void> {
    const { clock } = this.#options;
    this.#beat?.cancel();
    if (clock.monotonic() >= this.#noJoinBefore) await this.#joinNow();
    if (this.#connection !== undefined)
      this.#beat = clock.timer(BEAT_MS, () => void this.#join(), { keepsAlive: false });
  }

  async #joinNow(): Promise<void> {
    const others = this.#members.filter((member) => member !== this.#id);
    const known = JSON.stringify({ epoch: this.#epoch, others, counts: this.#counts() });
    const epoch = this.#isJoined ? this.#epoch : '';
    try {
      this.#onJoined(await this.#run(JOIN, [epoch, this.#id, randomUUID(), known]));
    } catch {
      // `#run` has told it.
    }
  }

  #onJoined([epoch, time, members, bans]: readonly unknown[]): void {
    const { clock, warn, name } = this.#options;
    const now = clock.monotonic();
    const wasJoined = this.#isJoined;
    this.#isJoined = true;
    this.#epoch = String(epoch);
    this.#offsetMs = Number(time) - now;
    this.#members = (members as readonly unknown[]).map(String);
    this.bans.learn(bans as readonly unknown[]);
    if (this.#lost !== undefined) {
      this.#lost = undefined;
      warn(
        `Redis answers again: the group ${name} (${countText(this.members, 'program')}) shares its limits`,
      );
    }
    if (!wasJoined) for (const listener of this.#listeners) listener();
  }

  #counts(): object[] {
    const known = [...this.#known.values()].map((ask) => ask());
    return known.flatMap(({ bucket, windowMs, window, own, used }) => {
      const key = `${bucket}:${windowMs}:${window}`;
      return Number.isNaN(window) ? [] : [{ key, windowMs, own, used }];
    });
  }

  /** Runs a script. Rejects if Redis cannot be used, and the group is then lost; or if all runs have left the group. */
  async #run(script: string, words: readonly (string | number)[]): Promise<readonly unknown[]> {
    const connection = this.#connected();
    try {
      const answer: unknown = await connection.client.eval(script, 1, this.#redisKey, ...words);
      if (connection !== this.#connection) throw new Error('all runs have left the group');
      if (!Array.isArray(answer)) throw new Error('the answer is not a list');
      return answer;
    } catch (error) {
      if (connection === this.#connection) this.#onLost(error, connection);
      throw error;
    }
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
    this.#isJoined = false;
    if (isForeignData(error)) this.#noJoinBefore = this.#lost.at + FOREIGN_MS;
    if (this.#epoch === '' && problem.code === 'redis-refused') {
      this.#refusal = problem;
      return;
    }
    const share =
      this.#members.length === 0
        ? `one tenth of each limit, because the size of the group ${name} is not known`
        : `1/${this.members} of each limit, because the group ${name} had ${countText(this.members, 'program')}`;
    warn(`${problem.message}; until it answers, this program takes ${share}, from the next window on`);
    for (const listener of this.#listeners) listener();
  }
}

/** The group of the options; undefined without `--egress-group` or `--redis`. The runs of a process share it. */
export function egressGroupOf(
  {
    redis: address,
    egressGroup: name,
  }: { readonly redis?: string | undefined; readonly egressGroup?: string | undefined },
  {
    common = new SharedResources(),
    ...options
  }: Omit<GroupOptions, 'address' | 'name'> & { readonly common?: SharedResources | undefined },
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
  #bans: ReadonlyMap<string, GroupBan> = new Map();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Calls back for each ban that is new or longer. */
  onBan(listener: (ban: GroupBan) => void): void {
    this.#listeners.add(listener);
  }

  /** The bans at this moment. */
  get current(): readonly GroupBan[] {
    const now = this.#clock.monotonic();
    return [...this.#bans.values()].filter(({ until }) => until > now);
  }

  /** Takes the list of Redis: place, milliseconds that are left, reason, and so on. No ban by a host lasts longer than `LONGEST_WAIT_MS`. */
  learn(flat: readonly unknown[]): void {
    const now = this.#clock.monotonic();
    const known = this.#bans;
    const bans = new Map<string, GroupBan>();
    for (let at = 0; at < flat.length; at += 3) {
      const [place, leftMs, why] = [String(flat[at]), Number(flat[at + 1]), String(flat[at + 2])];
      bans.set(place, { place, until: now + Math.min(leftMs, LONGEST_WAIT_MS), why });
    }
    this.#bans = bans;
    // The computed end of a known ban is a little different each time.
    const isLonger = ({ place, until }: GroupBan): boolean =>
      until > (known.get(place)?.until ?? 0) + BEAT_MS;
    for (const ban of [...bans.values()].filter(isLonger))
      for (const listener of this.#listeners) listener(ban);
  }

  /** Removes bans. Returns their places. */
  remove(isRemoved: (place: string) => boolean): string[] {
    const places = [...this.#bans.keys()].filter(isRemoved);
    this.#bans = new Map([...this.#bans].filter(([place]) => !isRemoved(place)));
    return places;
  }
}
