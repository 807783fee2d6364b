/** The pieces of work that have begun and not ended. */
import type { Clock } from '../model/clock.js';
import type { OnWork, Work } from '../model/work.js';
import type { RunMonitor } from './run-monitor.js';

export interface PieceInProgress extends Work {
  /** Milliseconds since its beginning. */
  readonly forMs: number;
}

/** Holds only what is in progress, so its memory is bounded by the concurrency of the run. */
export class WorkInProgress implements RunMonitor {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #pieces = new Set<{ readonly work: Work; readonly begunAt: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  readonly work: OnWork = (work) => {
    const piece = { work, begunAt: this.#clock.monotonic() };
    this.#pieces.add(piece);
    return () => {
      this.#pieces.delete(piece);
    };
  };

  /** In the order of their beginning. */
  get pieces(): readonly PieceInProgress[] {
    const now = this.#clock.monotonic();
    return [...this.#pieces].map(({ work, begunAt }) => ({ ...work, forMs: Math.round(now - begunAt) }));
  }
}
