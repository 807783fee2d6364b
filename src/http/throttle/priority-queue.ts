/** The order of requests by priority: in the queue of this run, and between the runs of this machine. */
import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { closeSync, lstatSync, lutimesSync, opendirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../model/clock.js';
import { errnoOf } from '../../model/errors.js';
import type { OnWait, Priority } from '../fetch.js';
import { BudgetFolder } from './shared-count.js';

interface Waiting {
  readonly priority: Priority;
}

/** The waits and refusals of a bucket. */
export interface LimiterTally {
  /** Number of waits, and their sum in milliseconds. */
  waits: number;
  waitedMs: number;
  /** Refusals of the server for too many requests; refusals of requests in flight together count as one. */
  refusals: number;
}

/** Waiting requests by priority. Those of one priority are in the order of arrival. */
export class PriorityQueue<T extends Waiting> {
  readonly #queues: Readonly<Record<Priority, Set<T>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };

  get size(): number {
    const { high, normal, low } = this.#queues;
    return high.size + normal.size + low.size;
  }

  /** 1 for each priority with waiting requests, otherwise 0. */
  wanting(): Record<Priority, number> {
    const { high, normal, low } = this.#queues;
    return { high: Math.min(1, high.size), normal: Math.min(1, normal.size), low: Math.min(1, low.size) };
  }

  /** Adds a request. Returns the function that removes it. */
  add(item: T): () => void {
    const queue = this.#queues[item.priority];
    queue.add(item);
    return () => {
      queue.delete(item);
    };
  }

  /**
   * The oldest request of each priority, in the order of service: priorities with an earned permit from the lowest to the
   * highest, then the others from the highest to the lowest.
   */
  heads(shares: Shares): T[] {
    const heads = PRIORITIES.flatMap((priority) => {
      const [head] = this.#queues[priority];
      return head === undefined ? [] : [head];
    });
    const earned = heads.filter((head) => shares.has(head.priority));
    return [...earned.toReversed(), ...heads.filter((head) => !earned.includes(head))];
  }

  *[Symbol.iterator](): Generator<T> {
    for (const priority of PRIORITIES) yield* this.#queues[priority];
  }
}

// Lower priorities get a share of the permits also while a higher one wants them, so that none waits forever.

/** Priorities, highest first. */
export const PRIORITIES: readonly Priority[] = ['high', 'normal', 'low'];

/** Number of runs that want permits, by priority. */
export type Wanting = Readonly<Record<Priority, number>>;

/** While a priority wants permits, all lower priorities together get this share. */
const LOWER_SHARE = 0.2;

/** The longest pause for which a request waits, in milliseconds. */
export type LongestWait = (() => number) | undefined;

/** A permit for one request. */
export interface WeightedPermit {
  readonly weight: number;
  readonly priority: Priority;
}

export interface Permit extends WeightedPermit {
  readonly onWait?: OnWait | undefined;
  /** A longer pause is refused with `rate-limited`, because another source has the data. Milliseconds. */
  readonly longestWaitMs?: LongestWait;
}

/** A lower priority earns a part of a permit with each permit that is taken. */
export class Shares {
  readonly #earned: Record<Priority, number> = { high: 0, normal: 0, low: 0 };

  /**
   * Adds the earnings of this run for `taken` permits. The highest priority that wants permits earns nothing, because it
   * gets the rest. All runs of one priority together save at most `most` permits, but each of them may save one.
   */
  earn(taken: number, wanting: Wanting, most: number): void {
    const lowest = PRIORITIES.findLast((priority) => wanting[priority] > 0);
    let share = 1;
    for (const priority of PRIORITIES) {
      const runs = wanting[priority];
      if (runs === 0) continue;
      if (share < 1) {
        const perRun = (share * (priority === lowest ? 1 : 1 - LOWER_SHARE)) / runs;
        const earned = this.#earned[priority] + taken * perRun;
        this.#earned[priority] = Math.min(Math.max(1, most / runs), earned);
      }
      share *= LOWER_SHARE;
    }
  }

  has(priority: Priority): boolean {
    return this.#earned[priority] >= 1;
  }

  /** Pays for a permit. A permit heavier than the earnings leaves a debt. A permit without earnings costs nothing. */
  spend({ weight, priority }: WeightedPermit): void {
    if (this.has(priority)) this.#earned[priority] -= weight;
  }
}

export interface DemandOptions {
  readonly folder: string;
  /** Name of the bucket. */
  readonly name: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly warn: (message: string) => void;
}

const DEMAND_NAME = /^(high|normal|low)-[0-9a-f-]{36}\.wanting$/;
const NONE: Wanting = { high: 0, normal: 0, low: 0 };
/** Least milliseconds between two updates of the file of this run. */
const SHOW_MS = 1000;
/** Least milliseconds between two reads of the files of other runs. */
const READ_MS = 200;
/** An older file counts as no demand: the run wants no permits, or was killed. Milliseconds. */
const STALE_MS = 5000;
/** An older file is removed. Milliseconds. */
const LEFT_MS = 60_000;
/** At most so many files are read. A machine has fewer runs, so further files are foreign. */
const MOST_FILES = 1000;

/**
 * The runs of this machine that want permits of a bucket. Each has one empty file per priority: its name has the priority, and
 * its modification time is the last time at which the run wanted a permit (docs/adr/0013). If the files cannot be written or
 * read, the run goes on, but no longer knows the priorities of other runs.
 */
export class Demand {
  readonly #options: DemandOptions;
  readonly #folder: BudgetFolder;
  readonly #files = new Map<Priority, { readonly name: string; shownAt: number }>();
  #others = NONE;
  #readAt = Number.NEGATIVE_INFINITY;
  #isOff = false;

  constructor(options: DemandOptions) {
    this.#options = options;
    this.#folder = new BudgetFolder(options.folder, options.name);
  }

  /** Records that this run wants permits now. */
  show(priority: Priority): void {
    const now = this.#options.clock.monotonic();
    const file = this.#files.get(priority) ?? {
      name: `${priority}-${randomUUID()}.wanting`,
      shownAt: Number.NEGATIVE_INFINITY,
    };
    if (now - file.shownAt < SHOW_MS) return;
    file.shownAt = now;
    this.#files.set(priority, file);
    this.#try(() => {
      this.#touch(join(this.#folder.path, file.name));
    });
  }

  /** Counts other runs that want permits now, by priority. */
  others(): Wanting {
    const now = this.#options.clock.monotonic();
    if (now - this.#readAt < READ_MS) return this.#others;
    this.#readAt = now;
    this.#others = NONE;
    this.#try(() => {
      this.#others = this.#read();
    });
    return this.#others;
  }

  /** Records that this run wants no more permits at this priority. */
  hide(priority: Priority): void {
    const file = this.#files.get(priority);
    this.#files.delete(priority);
    if (file === undefined) return;
    this.#try(() => {
      rmSync(join(this.#folder.path, file.name), { force: true });
    });
  }

  /** Follows no link. */
  #touch(path: string): void {
    this.#folder.make();
    const seconds = this.#options.clock.now() / 1000;
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, 'wx'));
    lutimesSync(path, seconds, seconds);
  }

  #read(): Wanting {
    const ofThisRun = new Set([...this.#files.values()].map(({ name }) => name));
    const wanting = { ...NONE };
    this.#folder.check();
    const folder = opendirSync(this.#folder.path);
    try {
      for (let read = 0; read < MOST_FILES; read += 1) {
        const name = folder.readSync()?.name;
        if (name === undefined) break;
        const priority = DEMAND_NAME.exec(name)?.[1] as Priority | undefined;
        if (priority !== undefined && !ofThisRun.has(name) && this.#isFresh(name)) wanting[priority] += 1;
      }
    } finally {
      folder.closeSync();
    }
    return wanting;
  }

  /** Whether the run of a file wants permits now. Removes a file older than `LEFT_MS`. */
  #isFresh(name: string): boolean {
    const path = join(this.#folder.path, name);
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined || !isDemandFile(facts)) return false;
    // After a change of the clock, the time of a file may lie in the future.
    const ageMs = Math.abs(this.#options.clock.now() - facts.mtimeMs);
    if (ageMs > LEFT_MS) removeLeft(path);
    return ageMs <= STALE_MS;
  }

  #try(act: () => void): void {
    if (this.#isOff) return;
    try {
      act();
    } catch (error) {
      this.#isOff = true;
      this.#options.warn(
        `runs cannot share their priorities in ${this.#folder.path} (${errnoOf(error)}): --priority does not count between them`,
      );
    }
  }
}

function isDemandFile(facts: Stats): boolean {
  return facts.isFile() && facts.size === 0;
}

/** In a folder of several users, the file may belong to another user. */
function removeLeft(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The file stays and is ignored.
  }
}
