/** Who gets the next permit: first come, first served within a priority, and nobody waits for ever (mechanism Z7). */

import type { Priority } from '../fetch.js';

const PRIORITIES: readonly Priority[] = ['high', 'normal', 'low'];

/** How much longer a lower priority must have waited to come first. */
const AHEAD_MS: Readonly<Record<Priority, number>> = { high: 20_000, normal: 10_000, low: 0 };

interface Waiting<T> {
  readonly item: T;
  readonly since: number;
}

export class Lanes<T> {
  readonly #lanes: Readonly<Record<Priority, Set<Waiting<T>>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };

  get size(): number {
    const { high, normal, low } = this.#lanes;
    return high.size + normal.size + low.size;
  }

  /** Returns what takes it out again. */
  add(item: T, priority: Priority, nowMs: number): () => void {
    const waiting = { item, since: nowMs };
    this.#lanes[priority].add(waiting);
    return () => {
      this.#lanes[priority].delete(waiting);
    };
  }

  /** Whose turn it is; stays where it is. */
  first(): T | undefined {
    let best: { item: T; rank: number } | undefined;
    for (const priority of PRIORITIES) {
      const [head] = this.#lanes[priority];
      if (head === undefined) continue;
      const rank = head.since - AHEAD_MS[priority];
      if (best === undefined || rank < best.rank) best = { item: head.item, rank };
    }
    return best?.item;
  }

  *[Symbol.iterator](): Generator<T> {
    for (const priority of PRIORITIES) for (const { item } of this.#lanes[priority]) yield item;
  }
}
