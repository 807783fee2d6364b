/** The order of waiting requests by priority, and the permits that lower priorities earn. */
import type { OnWait, Priority } from '../../model/fetch.js';

/** Priorities, highest first. */
export const PRIORITIES: readonly Priority[] = ['high', 'normal', 'low'];

/** Whether requests of a priority want permits. */
export type Wanting = Readonly<Record<Priority, boolean>>;

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

  /** The priorities that have waiting requests. */
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
   * The oldest request of each priority, in the order of service: priorities with an earned permit, lowest first, then the others, highest
   * first.
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

// A lower priority gets a share of the permits also while a higher one wants them, so that none waits forever.

/** The share of all lower priorities together while a priority wants permits. */
const LOWER_SHARE = 0.2;

/** The longest pause for which a request waits, in milliseconds. */
export type LongestWait = (() => number) | undefined;

/** The permit that a request asks for. It counts as `weight` permits of weight 1. */
export interface Permit {
  readonly weight: number;
  readonly priority: Priority;
  readonly onWait?: OnWait | undefined;
  /** A longer pause is refused with `rate-limited`, because another source has the data. Milliseconds. */
  readonly longestWaitMs?: LongestWait;
}

/** The permits that lower priorities have earned: a part of one with each permit that is taken. */
export class Shares {
  readonly #earned: Record<Priority, number> = { high: 0, normal: 0, low: 0 };

  /**
   * Adds the earnings for `taken` permits. The highest priority that wants permits earns nothing, because it gets the rest. A priority saves
   * up to `most` permits, and up to one if `most` is less.
   */
  earn(taken: number, wanting: Wanting, most: number): void {
    const lowest = PRIORITIES.findLast((priority) => wanting[priority]);
    // The share of this priority and of all lower ones.
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

  /** Pays for a taken permit with earnings. A permit that is heavier than these leaves a debt. Below one earned permit, nothing is paid. */
  spend({ weight, priority }: Permit): void {
    if (this.has(priority)) this.#earned[priority] -= weight;
  }
}
