/** Virtual time for a whole program, which also works in real time: on files, in DuckDB. */
import { VirtualClock } from './virtual-clock.js';

export interface Driven {
  /** Any number that changes whenever the program gets on; the clock sees by itself what becomes of its timers. */
  readonly progress: () => number;
  /** As much waits for the venue as may: nothing more can be begun before time passes. */
  readonly isFull: () => boolean;
}

/** Real turns without any change, after which only time can help: when everything waits, and when something may be at work. */
const QUIET_WHEN_FULL = 2;
const QUIET_OTHERWISE = 20;
const TURN_MS = 3;
/** Of a turn, in microseconds: more says that a thread of the process is at work. */
const AT_WORK_US = 1000;

/**
 * Moves on to its next timer only when the program cannot move by itself: when all places wait for an answer or a
 * permit, or when for a while of real time nothing at all has changed and no thread was at work. It never moves while a
 * file is being read or written. Moved too early it would only make a run look slower than it is: nothing that is counted
 * becomes wrong.
 */
export class IdleClock extends VirtualClock {
  readonly #offsetMs: number;

  /** `startsAt`: epoch milliseconds. */
  constructor(startsAt: number) {
    super();
    this.#offsetMs = startsAt - this.monotonic();
  }

  override now(): number {
    return this.#offsetMs + this.monotonic();
  }

  /** Lets time pass until the work is done. */
  async drive<T>(work: Promise<T>, { progress, isFull }: Driven): Promise<T> {
    const over = new AbortController();
    const end = (): void => {
      over.abort();
    };
    work.then(end, end);
    let seen = '';
    let quiet = 0;
    while (!over.signal.aborted) {
      const waitsFull = isFull();
      const before = process.cpuUsage();
      await turn(waitsFull ? 0 : TURN_MS);
      const { user, system } = process.cpuUsage(before);
      const isAtWork = isAtFiles() || (!waitsFull && user + system > AT_WORK_US);
      const state = `${this.timersSet} ${this.waiting} ${progress()}`;
      quiet = state === seen && !isAtWork ? quiet + 1 : 0;
      seen = state;
      const leftMs = this.untilNext;
      if (leftMs === undefined || quiet < (waitsFull ? QUIET_WHEN_FULL : QUIET_OTHERWISE)) continue;
      quiet = 0;
      await this.advance(leftMs);
    }
    return work;
  }
}

function turn(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (ms === 0) setImmediate(resolve);
    else setTimeout(resolve, ms);
  });
}

function isAtFiles(): boolean {
  return process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));
}
