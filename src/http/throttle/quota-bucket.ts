/** Permits of what a server counts together: weighted, by priority, paused by its refusals. */
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError, waitTooLong } from '../../model/errors.js';
import { durationText } from '../../model/units.js';
import type { OnWait, Priority } from '../fetch.js';
import type { Demand } from './demand.js';
import type { Meter } from './meter.js';
import { Lanes, PRIORITIES, Shares } from './priority-queue.js';
import type { LimiterTally, Wanting, WeightedPermit } from './priority-queue.js';

export interface QuotaBucketOptions {
  readonly clock: Clock;
  readonly name: string;
  readonly meter: Meter;
  /** What other runs want of the same permits; unknown when nothing is said. */
  readonly demand?: Pick<Demand, 'show' | 'hide' | 'others'>;
  /** A longer pause is refused with `wait-too-long`. */
  readonly maxWaitMs: number;
  /** A longer pause is refused with `rate-limited`: another source is asked meanwhile. */
  readonly longestWaitMs?: (() => number) | undefined;
}

export interface Permit extends WeightedPermit {
  readonly onWait?: OnWait | undefined;
}

interface Waiter extends Permit {
  /** Ends the wait that was told last, and tells the one of now. */
  readonly retell: () => void;
  readonly grant: () => void;
  readonly refuse: (error: unknown) => void;
}

/** What a refusal without a deadline costs the whole bucket; twice as much each time that it goes on. */
const PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** A priority that asked so recently wants more, although none of its requests waits now. */
const WANTS_MS = 5000;
/** Other runs are told of a wait, and looked for, this often. */
const TELL_MS = 1000;
/** Permits that are left to a higher priority are looked at again this often: it takes them without telling. */
const LOOK_MS = 50;
/** The share of the most permits that lower priorities save up for later. */
const SAVED = 0.05;

/**
 * Exact wake-up: no polling unless permits are left to other runs, and nothing is held across a wait. While a higher priority
 * wants permits, here or in another run, a lower one takes only what it earned or what an even pace leaves over.
 */
export class QuotaBucket implements LimiterTally {
  /** Of all that asked without a tally of their own. */
  waits = 0;
  waitedMs = 0;
  refusals = 0;
  readonly #options: QuotaBucketOptions;
  readonly #waiters = new Lanes<Waiter>();
  readonly #shares = new Shares();
  readonly #askedAt = { high: -Infinity, normal: -Infinity, low: -Infinity };
  #seen: number;
  #pausedUntil = 0;
  #wasPaused = false;
  #pauses = 0;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #wakeUp: Timer | undefined;

  constructor(options: QuotaBucketOptions) {
    this.#options = options;
    this.#seen = options.meter.taken;
  }

  get isPaced(): boolean {
    return this.#options.meter.isPaced === true;
  }

  /**
   * Resolves when the permit is taken; rejects with the signal's reason, `wait-too-long`, or for a weight that never fits.
   * `waitSignal` ends a wait only: a permit that is there is given.
   */
  async take(
    permit: Permit,
    signal: AbortSignal,
    waitSignal = signal,
    tally: LimiterTally = this,
  ): Promise<void> {
    const { clock, meter, name } = this.#options;
    signal.throwIfAborted();
    if (permit.weight > meter.most) {
      throw new CryptodlError(
        'bug',
        `a request of weight ${permit.weight} never fits into ${name}, which has ${meter.most}`,
      );
    }
    this.#refuseLongPause();
    const now = clock.monotonic();
    this.#askedAt[permit.priority] = now;
    if (this.#waiters.size === 0 && now >= this.#pausedUntil && this.#tryTake(permit, now).isTaken) return;
    waitSignal.throwIfAborted();
    tally.waits += 1;
    try {
      await this.#wait(permit, waitSignal);
    } finally {
      tally.waitedMs += clock.monotonic() - now;
    }
  }

  /** The request was never sent. */
  giveBack(weight: number): void {
    const { clock, meter } = this.#options;
    meter.giveBack(weight, clock.monotonic());
    this.#wake();
  }

  /** Those who asked at this priority want no more; others of them who do will ask again. */
  leave(priority: Priority): void {
    this.#askedAt[priority] = -Infinity;
    this.#options.demand?.hide(priority);
    this.#wake();
  }

  /** The server took a request that was sent then: whatever it refused before is over. */
  onTaken(sentAt: number): void {
    if (sentAt > this.#refusedAt) this.#pauses = 0;
  }

  /**
   * The server refused a request that was sent then, for so long if it says how long. Those that were under way together
   * are one refusal (defect D17). Throws like `pause`.
   */
  onRefused(sentAt: number, retryAfterMs: number | undefined, tally: LimiterTally = this): void {
    const { clock, meter } = this.#options;
    const now = clock.monotonic();
    const isNew = sentAt > this.#refusedAt;
    if (isNew) {
      tally.refusals += 1;
      this.#pauses += 1;
      this.#refusedAt = now;
    }
    const untilWindow = retryAfterMs ?? meter.onExhausted(now);
    if (untilWindow !== undefined) this.pause(untilWindow);
    else if (isNew) this.pause(Math.min(PAUSE_MS * 2 ** (this.#pauses - 1), LONGEST_PAUSE_MS));
  }

  #wait(permit: Permit, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      let endWait = this.#tellWait(permit);
      const end = (act: () => void) => (): void => {
        signal.removeEventListener('abort', onAbort);
        leave();
        act();
      };
      const waiter: Waiter = {
        ...permit,
        retell: () => {
          endWait?.();
          endWait = this.#tellWait(permit);
        },
        grant: end(resolve),
        refuse: (error) => {
          end(() => {
            reject(error);
          })();
        },
      };
      const onAbort = (): void => {
        leave();
        this.#wake();
        reject(signal.reason as Error);
      };
      const leaveLane = this.#waiters.add(waiter);
      const leave = (): void => {
        leaveLane();
        endWait?.();
      };
      signal.addEventListener('abort', onAbort, { once: true });
      // A request that comes later changes nothing for those before it.
      if (this.#waiters.heads(this.#shares).includes(waiter)) this.#wake();
    });
  }

  /**
   * Nothing leaves before `delayMs` have passed. A shorter pause does not end a longer one. Throws `wait-too-long` or
   * `rate-limited`, and refuses with it whoever waits already.
   */
  pause(delayMs: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#options.clock.monotonic() + delayMs);
    try {
      this.#refuseLongPause();
    } catch (error) {
      for (const waiter of this.#waiters) waiter.refuse(error);
      this.#wake();
      throw error;
    }
    this.#wake();
  }

  #refuseLongPause(): void {
    const { clock, maxWaitMs, longestWaitMs } = this.#options;
    const leftMs = this.#pausedUntil - clock.monotonic();
    if (longestWaitMs !== undefined && leftMs > longestWaitMs()) throw askedToWait(leftMs);
    if (leftMs <= maxWaitMs) return;
    throw waitTooLong(
      `asked to wait ${durationText(leftMs)}, longer than --max-wait ${durationText(maxWaitMs)}`,
    );
  }

  get #isPaused(): boolean {
    return this.#options.clock.monotonic() < this.#pausedUntil;
  }

  #tellWait({ onWait }: Permit): ReturnType<OnWait> | undefined {
    return onWait?.(this.#isPaused ? 'pause' : 'permit');
  }

  /** A pause that begins or ends changes what those in the line wait for. */
  #retell(): void {
    const isPaused = this.#isPaused;
    if (isPaused === this.#wasPaused) return;
    this.#wasPaused = isPaused;
    for (const waiter of this.#waiters) waiter.retell();
  }

  /** Gives what there is, and sets the timer for the next. */
  #wake(): void {
    this.#retell();
    this.#wakeUp?.cancel();
    this.#wakeUp = undefined;
    const { clock, demand } = this.#options;
    while (this.#waiters.size > 0) {
      const now = clock.monotonic();
      const pausedMs = this.#pausedUntil - now;
      const delayMs = pausedMs > 0 ? pausedMs : this.#giveNext(now);
      if (delayMs === 0) continue;
      const mostMs = pausedMs > 0 || demand === undefined ? delayMs : Math.min(delayMs, TELL_MS);
      // Rounding may leave a wait too small to move the time: then the same would be asked for ever.
      this.#wakeUp = clock.timer(Math.max(1, Math.ceil(mostMs)), () => {
        this.#wake();
      });
      return;
    }
  }

  /** Gives one permit and returns 0, or returns the milliseconds after which it is worth asking again. */
  #giveNext(now: number): number {
    let leftMs = Number.POSITIVE_INFINITY;
    for (const head of this.#waiters.heads(this.#shares)) {
      this.#askedAt[head.priority] = now;
      const { isTaken, isLeft, delayMs } = this.#tryTake(head, now);
      if (isTaken) {
        head.grant();
        return 0;
      }
      leftMs = Math.min(leftMs, delayMs);
      // No other overtakes a request for which there is too little.
      if (!isLeft) break;
    }
    return leftMs;
  }

  #tryTake(permit: Permit, now: number): { isTaken: boolean; isLeft: boolean; delayMs: number } {
    const { meter, demand } = this.#options;
    const { priority, weight } = permit;
    demand?.show(priority);
    const wanting = this.#wanting(now);
    const mayLeave = PRIORITIES.slice(0, PRIORITIES.indexOf(priority)).some((higher) => wanting[higher] > 0);
    const isSpare = !mayLeave || meter.isSpare(weight, now);
    this.#earn(wanting);
    if (!isSpare && !this.#shares.has(priority)) return { isTaken: false, isLeft: true, delayMs: LOOK_MS };
    const delayMs = meter.take(weight, now);
    if (delayMs === 0) {
      this.#shares.spend(permit);
      this.#earn(wanting);
    }
    return { isTaken: delayMs === 0, isLeft: false, delayMs };
  }

  /** With the permits that were taken since. */
  #earn(wanting: Wanting): void {
    const { meter } = this.#options;
    this.#shares.earn(meter.taken - this.#seen, wanting, meter.most * SAVED);
    this.#seen = meter.taken;
  }

  /** How many want permits: all requests of a priority here count as one, and each other run as one more. */
  #wanting(now: number): Wanting {
    const others = this.#options.demand?.others() ?? { high: 0, normal: 0, low: 0 };
    const waiting = this.#waiters.wanting();
    const wants = (priority: Priority): number =>
      others[priority] + (now - this.#askedAt[priority] < WANTS_MS ? 1 : waiting[priority]);
    return { high: wants('high'), normal: wants('normal'), low: wants('low') };
  }
}

/** It is for the caller to ask elsewhere, or again: no layer below waits for it. */
function askedToWait(leftMs: number): CryptodlError {
  const error = new CryptodlError('rate-limited', `asked to wait ${durationText(leftMs)}`);
  error.isGivenUp = true;
  return error;
}
