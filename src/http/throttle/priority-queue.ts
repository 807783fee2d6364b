/** The order of waiting requests by priority. */
import type { OnWait, Priority } from '../../model/fetch.js';

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

/** Priorities, highest first. */
const PRIORITIES: readonly Priority[] = ['high', 'normal', 'low'];

/** A waiting request comes next when other priorities got so many times its permits, so that none waits forever. For each further priority above it, so many times more. */
const PASSES = 4;

/** Waiting requests by priority. Those of one priority are in the order of arrival. */
export class PriorityQueue<T extends Permit> {
  readonly #queues: Readonly<Record<Priority, Set<T>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };
  /** Permits that other priorities got since the last one of this priority, while it waited. */
  readonly #passed: Record<Priority, number> = { high: 0, normal: 0, low: 0 };

  get size(): number {
    const { high, normal, low } = this.#queues;
    return high.size + normal.size + low.size;
  }

  /** Adds a request. Returns the function that removes it. */
  add(item: T): () => void {
    const queue = this.#queues[item.priority];
    queue.add(item);
    return () => queue.delete(item);
  }

  /** The request to serve next: of the lowest priority whose turn has come, else of the highest. */
  get next(): T | undefined {
    const heads = PRIORITIES.flatMap((priority) => {
      const [head] = this.#queues[priority];
      return head === undefined ? [] : [head];
    });
    const passed = heads.findLast(
      ({ priority, weight }, above) => above > 0 && this.#passed[priority] >= weight * PASSES ** above,
    );
    return passed ?? heads[0];
  }

  /** Counts the permit of a waiting request. */
  onGiven({ priority, weight }: Permit): void {
    for (const other of PRIORITIES) if (this.#queues[other].size > 0) this.#passed[other] += weight;
    this.#passed[priority] = 0;
  }

  *[Symbol.iterator](): Generator<T> {
    for (const priority of PRIORITIES) yield* this.#queues[priority];
  }
}
