/** Permits that lower priorities get although a higher one wants them too, so that none of them starves (mechanism Z7). */
import type { Priority } from '../fetch.js';

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
