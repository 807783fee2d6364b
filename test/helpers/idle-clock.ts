/** Virtual time for a whole program, which also works in real time: on files, in DuckDB. */
import { createHook } from 'node:async_hooks';
import { VirtualClock } from './virtual-clock.js';

export interface Driven {
  /** Any number that changes whenever the program gets on; the clock sees by itself what becomes of its timers. */
  readonly progress: () => number;
  /** As much waits for the venue as may: nothing more can be begun before time passes. */
  readonly isFull?: () => boolean;
  /** The venue is a server of this process: its bytes arrive within a turn, and a few short turns show that nothing moves. */
  readonly isVenueWithin?: boolean;
}

/** Real turns without any change, after which only time can help: when everything waits, and otherwise. */
const QUIET_WHEN_FULL = 2;
const CAUTIOUS = { quietTurns: 20, turnMs: 3, stepMs: 0 };
const QUICK = { quietTurns: 4, turnMs: 1, stepMs: 5 };
/** Of each millisecond of a turn, in microseconds: more says that a thread of the process is at work. */
const AT_WORK_US = 333;

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
  async drive<T>(
    work: Promise<T>,
    { progress, isFull = () => false, isVenueWithin = false }: Driven,
  ): Promise<T> {
    const { quietTurns, turnMs, stepMs } = isVenueWithin ? QUICK : CAUTIOUS;
    const native = isVenueWithin ? new NativeWork() : undefined;
    const over = new AbortController();
    const end = (): void => {
      over.abort();
      native?.end();
    };
    work.then(end, end);
    let seen = '';
    let quiet = 0;
    while (!over.signal.aborted) {
      const waitsFull = isFull();
      const before = process.cpuUsage();
      await turn(waitsFull ? 0 : turnMs);
      const { user, system } = process.cpuUsage(before);
      const isAtWork =
        isAtSystem() || native?.isUnderWay === true || (!waitsFull && user + system > turnMs * AT_WORK_US);
      const state = `${this.timersSet} ${this.waiting} ${progress()}`;
      quiet = state === seen && !isAtWork ? quiet + 1 : 0;
      seen = state;
      const leftMs = this.untilNext;
      if (leftMs === undefined || quiet < (waitsFull ? QUIET_WHEN_FULL : quietTurns)) continue;
      quiet = 0;
      await this.advance(Math.max(leftMs, stepMs));
    }
    return work;
  }
}

/** Work of native modules on threads, such as DuckDB's: while it waits for the disk it uses no CPU. */
class NativeWork {
  readonly #ids = new Set<number>();
  readonly #hook = createHook({
    init: (id, type) => {
      // The type of each work that a native module begins (`napi_create_async_work`).
      if (type === 'generic') this.#ids.add(id);
    },
    destroy: (id) => {
      this.#ids.delete(id);
    },
  }).enable();

  get isUnderWay(): boolean {
    return this.#ids.size > 0;
  }

  end(): void {
    this.#hook.disable();
  }
}

function turn(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (ms === 0) setImmediate(resolve);
    else setTimeout(resolve, ms);
  });
}

/** Whether the system works for this process: on files, on names, on connections. */
function isAtSystem(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(FSReq|GetAddrInfo|TCPConnect|Write)/.test(name));
}
