/** Waiting requests, by priority; within a priority in the order of arrival. */
import type { Priority } from '../fetch.js';

interface Waiting {
  readonly priority: Priority;
}

/** The waits and refusals of a bucket. */
export interface LimiterTally {
  /** Number of waits, and their sum in milliseconds. */
  waits: number;
  waitedMs: number;
  /** Refusals of the server for too many requests; a burst counts as one. */
  refusals: number;
}

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

  /** The first request of each priority in the order of service: lower priorities that earned a permit, then the highest. */
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

// Lower priorities get a share of the permits although a higher one wants them too, so that none starves.

/** Priorities, highest first. */
export const PRIORITIES: readonly Priority[] = ['high', 'normal', 'low'];

/** Number of sharers that want permits, by priority. */
export type Wanting = Readonly<Record<Priority, number>>;

/** Share of all permits for the priorities below one that wants permits. */
const LOWER_SHARE = 0.2;

export interface WeightedPermit {
  readonly weight: number;
  readonly priority: Priority;
}

/** A lower priority earns a part of a permit with each permit that is taken. */
export class Shares {
  readonly #earned: Record<Priority, number> = { high: 0, normal: 0, low: 0 };

  /**
   * Counts taken permits. The highest priority that wants permits earns nothing, because it gets the rest. All sharers of one
   * priority save at most `most` permits together.
   */
  earn(taken: number, wanting: Wanting, most: number): void {
    const levels = PRIORITIES.filter((priority) => wanting[priority] > 0);
    let share = 1;
    for (const [rank, priority] of levels.entries()) {
      const isLowest = rank === levels.length - 1;
      const own = (share * (isLowest ? 1 : 1 - LOWER_SHARE)) / wanting[priority];
      share *= LOWER_SHARE;
      const saved = Math.max(1, most / wanting[priority]);
      if (rank > 0) this.#earned[priority] = Math.min(saved, this.#earned[priority] + taken * own);
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
