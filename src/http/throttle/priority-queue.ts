/** The order of waiting requests by priority. */
import type { OnWait, Priority } from '../fetch.js';

/** The waits and refusals of a bucket. */
export interface LimiterTally {
  /** Number of waits, and their sum in milliseconds. */
  waits: number;
  waitedMs: number;
  /** Refusals of the server for too many requests; refusals of requests in flight together count as one. */
  refusals: number;
}

/** Waiting requests by priority. Those of one priority are in the order of arrival. */
export class PriorityQueue<T extends { readonly priority: Priority }> {
  readonly #queues: Readonly<Record<Priority, Set<T>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };

  get size(): number {
    const { high, normal, low } = this.#queues;
    return high.size + normal.size + low.size;
  }

  /** The priorities of the waiting requests. */
  get waiting(): Wanting {
    const { high, normal, low } = this.#queues;
    return { high: high.size > 0, normal: normal.size > 0, low: low.size > 0 };
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

/** Whether requests of a priority want permits. */
export type Wanting = Readonly<Record<Priority, boolean>>;

/** While a priority wants permits, all lower priorities together get this share. */
const LOWER_SHARE = 0.2;

/** The longest pause for which a request waits, in milliseconds. */
export type LongestWait = (() => number) | undefined;

/** A permit for one request. */
export interface Permit {
  readonly weight: number;
  readonly priority: Priority;
  readonly onWait?: OnWait | undefined;
  /** A longer pause is refused with `rate-limited`, because another source has the data. Milliseconds. */
  readonly longestWaitMs?: LongestWait;
}

/** A lower priority earns a part of a permit with each permit that is taken. */
export class Shares {
  readonly #earned: Record<Priority, number> = { high: 0, normal: 0, low: 0 };

  /**
   * Adds the earnings for `taken` permits. The highest priority that wants permits earns nothing, because it gets the rest. A
   * priority saves at most `most` permits, or one.
   */
  earn(taken: number, wanting: Wanting, most: number): void {
    const lowest = PRIORITIES.findLast((priority) => wanting[priority]);
    let share = 1;
    for (const priority of PRIORITIES) {
      if (!wanting[priority]) continue;
      if (share < 1) {
        const own = share * (priority === lowest ? 1 : 1 - LOWER_SHARE);
        this.#earned[priority] = Math.min(Math.max(1, most), this.#earned[priority] + taken * own);
      }
      share *= LOWER_SHARE;
    }
  }

  has(priority: Priority): boolean {
    return this.#earned[priority] >= 1;
  }

  /** Pays for a permit. A permit heavier than the earnings leaves a debt. A permit without earnings costs nothing. */
  spend({ weight, priority }: Permit): void {
    if (this.has(priority)) this.#earned[priority] -= weight;
  }
}
