/** Requests that wait: first come, first served within a priority. */
import type { Priority } from '../fetch.js';

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

// Permits that lower priorities get although a higher one wants them too, so that none of them starves (mechanism
// Z7).

/** Highest first. */
export const PRIORITIES: readonly Priority[] = ['high', 'normal', 'low'];

/** How many want permits, by priority. */
export type Wanting = Readonly<Record<Priority, number>>;

/** Of all permits: what the priorities below one get together while it wants permits. */
const LOWER_SHARE = 0.2;

export interface WeightedPermit {
  readonly weight: number;
  readonly priority: Priority;
}

/** A lower priority earns a part of a permit with each permit that is taken, by itself or by others. */
export class Shares {
  readonly #earned: Record<Priority, number> = { high: 0, normal: 0, low: 0 };

  /**
   * So many permits were taken. The highest priority that wants permits earns nothing: it has what the others leave. All that
   * want permits at one priority save no more than `most` together.
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

  /** A permit that is heavier than what was earned is a debt. One that was not earned costs nothing. */
  spend({ weight, priority }: WeightedPermit): void {
    if (this.has(priority)) this.#earned[priority] -= weight;
  }
}
