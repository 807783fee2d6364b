/** Requests that wait: first come, first served within a priority. */
import type { Priority } from '../fetch.js';
import { PRIORITIES } from './shares.js';
import type { Shares } from './shares.js';

interface Waiting {
  readonly priority: Priority;
}

/** What a bucket cost those who asked it. */
export interface LimiterTally {
  /** How often there was a wait, and how long all together. */
  waits: number;
  waitedMs: number;
  /** Refusals of the server that it was asked too much: a burst of them counts once. */
  refusals: number;
}

export class Lanes<T extends Waiting> {
  readonly #lanes: Readonly<Record<Priority, Set<T>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };

  get size(): number {
    const { high, normal, low } = this.#lanes;
    return high.size + normal.size + low.size;
  }

  /** All requests of a priority count as one. */
  wanting(): Record<Priority, number> {
    const { high, normal, low } = this.#lanes;
    return { high: Math.min(1, high.size), normal: Math.min(1, normal.size), low: Math.min(1, low.size) };
  }

  /** Returns what takes it out again. */
  add(item: T): () => void {
    const lane = this.#lanes[item.priority];
    lane.add(item);
    return () => {
      lane.delete(item);
    };
  }

  /** The first of each priority in the order of their turn: lower ones that have earned it, then the highest. */
  heads(shares: Shares): T[] {
    const heads = PRIORITIES.flatMap((priority) => {
      const [head] = this.#lanes[priority];
      return head === undefined ? [] : [head];
    });
    const earned = heads.filter((head) => shares.has(head.priority));
    return [...earned.toReversed(), ...heads.filter((head) => !earned.includes(head))];
  }

  *[Symbol.iterator](): Generator<T> {
    for (const priority of PRIORITIES) yield* this.#lanes[priority];
  }
}
