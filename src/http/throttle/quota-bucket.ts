/** The permits of one limit of a server. Requests get them by priority. A refusal pauses the bucket. */
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError, waitTooLong } from '../../model/errors.js';
import { durationText } from '../../model/units.js';
import type { OnWait } from '../../model/fetch.js';
import type { Meter } from './meter.js';
import { PriorityQueue, type LongestWait, type Permit } from './priority-queue.js';
import { Paces, type Pace } from './paces.js';

export interface LimiterTally {
  /** Number of waits, and their sum in milliseconds. */
  waits: number;
  waitedMs: number;
  /** Refusals of the server for too many requests; refusals of requests in flight together count as one. */
  refusals: number;
}

export interface QuotaBucketOptions {
  readonly clock: Clock;
  readonly name: string;
  readonly meter: Meter;
  /** Further limits, set by the user. */
  readonly paces?: readonly Pace[] | undefined;
  /** A longer pause is refused with `wait-too-long`. */
  readonly maxWaitMs: number;
}

interface Waiter extends Permit {
  /** Ends the reported wait, and reports a new one for the current reason. */
  readonly reportAgain: () => void;
  readonly grant: () => void;
  readonly refuse: (error: unknown) => void;
}

/** First pause after a refusal that gives no duration. It doubles with each further refusal. Milliseconds. */
const PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** While another program is asked for permits, a shorter wait does not count as a wait for the limit. Milliseconds. */
const ANSWER_MS = 100;

/** A bucket of permits. A timer wakes a request when its permit is available. A waiting request holds nothing. */
export class QuotaBucket implements LimiterTally {
  /** Waits and refusals of requests for which the caller passes no tally. */
  waits = 0;
  waitedMs = 0;
  refusals = 0;
  readonly #waiters = new PriorityQueue<Waiter>();
  readonly #paces: Paces;
  /** Milliseconds of waits for the paces and for the meter. */
  readonly #heldMs = { byPaces: 0, byMeter: 0 };
  #pausedUntil = 0;
  #wasPaused = false;
  #pauses = 0;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #wakeUp: Timer | undefined;
  /** The moment at which the first waiting request can get its permit. */
  #nextAt = 0;

  constructor(private readonly options: QuotaBucketOptions) {
    this.#paces = new Paces(options.paces ?? []);
  }

  /** `waiting`: requests that wait. The milliseconds before the first of them can get its permit, and those left of a pause after a refusal (429, 418). */
  get state() {
    const left = (at: number): number => Math.max(0, Math.round(at - this.options.clock.monotonic()));
    const { size: waiting } = this.#waiters;
    return { waiting, nextMs: waiting === 0 ? 0 : left(this.#nextAt), pausedMs: left(this.#pausedUntil) };
  }

  /** Whether requests waited mostly for a limit that the user set, not for the limit of the server. */
  get isPaced(): boolean {
    return this.#heldMs.byPaces > this.#heldMs.byMeter;
  }

  /**
   * Resolves when the permit is taken. Rejects with the reason of the signal, with `wait-too-long` or `rate-limited` for a pause
   * that is too long, or with `bug` for a weight that never fits. `waitSignal` ends only waits: an available permit is still given.
   */
  async take(
    permit: Permit,
    signal: AbortSignal,
    waitSignal = signal,
    tally: LimiterTally = this,
  ): Promise<void> {
    const { clock, meter, name } = this.options;
    signal.throwIfAborted();
    if (permit.weight > meter.most) {
      throw new CryptodlError(
        'bug',
        `a request of weight ${permit.weight} never fits into ${name}, which has ${meter.most}`,
      );
    }
    this.#refuseLongPause(permit.longestWaitMs);
    const now = clock.monotonic();
    if (this.#waiters.size === 0 && now >= this.#pausedUntil && this.#take(permit.weight, now) === 0) return;
    waitSignal.throwIfAborted();
    tally.waits += 1;
    const isAsking = meter.isAsking === true;
    try {
      await this.#wait(permit, waitSignal);
    } finally {
      const waitedMs = clock.monotonic() - now;
      tally.waitedMs += waitedMs;
      if (isAsking && waitedMs < ANSWER_MS) tally.waits -= 1;
    }
  }

  giveBack(weight: number): void {
    this.options.meter.giveBack(weight, this.options.clock.monotonic());
    this.#paces.giveBack();
    this.wake();
  }

  /** The server accepted a request that was sent at `sentAtMs`. If that was after the last refusal, pauses start short again. */
  onTaken(sentAtMs: number): void {
    if (sentAtMs > this.#refusedAt) this.#pauses = 0;
  }

  /** The server refused a request sent at `sentAtMs`, and perhaps asks for a wait. Refusals of requests in flight together count as one. Throws like `pause`. */
  onRefused(
    sentAtMs: number,
    retryAfterMs: number | undefined,
    tally: LimiterTally = this,
    longestWaitMs?: LongestWait,
  ): void {
    const { clock, meter } = this.options;
    const now = clock.monotonic();
    const isNew = sentAtMs > this.#refusedAt;
    if (isNew) {
      tally.refusals += 1;
      this.#pauses += 1;
      this.#refusedAt = now;
    }
    const untilWindow = retryAfterMs ?? meter.onExhausted?.(now);
    if (untilWindow !== undefined) this.pause(untilWindow, longestWaitMs);
    else if (isNew) this.pause(Math.min(PAUSE_MS * 2 ** (this.#pauses - 1), LONGEST_PAUSE_MS), longestWaitMs);
  }

  #wait(permit: Permit, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      let endWait = this.#reportWait(permit);
      const end = (act: () => void) => (): void => {
        signal.removeEventListener('abort', onAbort);
        leaveQueue();
        endWait?.();
        act();
      };
      const waiter: Waiter = {
        ...permit,
        reportAgain: () => {
          endWait?.();
          endWait = this.#reportWait(permit);
        },
        grant: end(resolve),
        refuse: (error) => end(reject.bind(undefined, error))(),
      };
      const onAbort = (): void => {
        waiter.refuse(signal.reason);
        this.wake();
      };
      const leaveQueue = this.#waiters.add(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
      // A request behind others changes nothing for them.
      if (this.#waiters.next === waiter) this.wake();
    });
  }

  /**
   * Pauses the bucket for `delayMs`. A shorter pause does not end a longer one. Throws `wait-too-long` or `rate-limited`,
   * and refuses each waiting request for which the pause is too long.
   */
  pause(delayMs: number, longestWaitMs?: LongestWait): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.options.clock.monotonic() + delayMs);
    for (const waiter of this.#waiters) {
      const tooLong = this.#longPause(waiter.longestWaitMs);
      if (tooLong !== undefined) waiter.refuse(tooLong);
    }
    this.wake();
    this.#refuseLongPause(longestWaitMs);
  }

  /** The error for a request that does not wait for the rest of the pause. Runs that share the bucket may wait for different times. */
  #longPause(longestWaitMs: LongestWait): CryptodlError | undefined {
    const { clock, maxWaitMs } = this.options;
    const leftMs = this.#pausedUntil - clock.monotonic();
    const asks = `the host asks for a wait of ${durationText(leftMs)}`;
    // The retry layer passes it on at once. The caller uses another source, or asks again later.
    if (leftMs > (longestWaitMs?.() ?? Infinity))
      return new CryptodlError('rate-limited', asks, { isGivenUp: true });
    if (leftMs <= maxWaitMs) return undefined;
    return waitTooLong(`${asks}, longer than --max-wait ${durationText(maxWaitMs)}`);
  }

  #refuseLongPause(longestWaitMs: LongestWait): void {
    const tooLong = this.#longPause(longestWaitMs);
    if (tooLong !== undefined) throw tooLong;
  }

  get #isPaused(): boolean {
    return this.options.clock.monotonic() < this.#pausedUntil;
  }

  #reportWait({ onWait }: Permit): ReturnType<OnWait> | undefined {
    return onWait?.(this.#isPaused ? 'pause' : 'permit');
  }

  /** Reports the new reason of all waits when a pause begins or ends. */
  #reportWaitsAgain(): void {
    const isPaused = this.#isPaused;
    if (isPaused === this.#wasPaused) return;
    this.#wasPaused = isPaused;
    for (const waiter of this.#waiters) waiter.reportAgain();
  }

  /** Gives all available permits and sets the timer for the next one. */
  wake(): void {
    this.#reportWaitsAgain();
    this.#wakeUp?.cancel();
    this.#wakeUp = undefined;
    const { clock } = this.options;
    while (this.#waiters.size > 0) {
      const now = clock.monotonic();
      const pausedMs = this.#pausedUntil - now;
      const delayMs = pausedMs > 0 ? pausedMs : this.#giveNext(now);
      if (delayMs === 0) continue;
      this.#nextAt = now + delayMs;
      // The next permit becomes free when one is given back.
      if (delayMs === Number.POSITIVE_INFINITY) return;
      // The computed wait can be shorter than the clock can measure. At least 1 ms, or the timer would fire again and again.
      this.#wakeUp = clock.timer(Math.max(1, Math.ceil(delayMs)), () => this.wake());
      return;
    }
  }

  /** Gives the next permit and returns 0, or returns the milliseconds before the next attempt can succeed. A lighter request does not overtake. */
  #giveNext(now: number): number {
    const { next } = this.#waiters;
    if (next === undefined) return Number.POSITIVE_INFINITY;
    const delayMs = this.#take(next.weight, now);
    if (delayMs > 0) return delayMs;
    this.#waiters.onGiven(next);
    next.grant();
    return 0;
  }

  /** Takes the permits and returns 0, or returns the milliseconds before the next attempt can succeed. */
  #take(weight: number, now: number): number {
    const paceMs = this.#paces.delayMs(now);
    const delayMs = paceMs > 0 ? paceMs : this.options.meter.take(weight, now);
    this.#heldMs[paceMs > 0 ? 'byPaces' : 'byMeter'] += delayMs;
    if (delayMs === 0) this.#paces.take(now);
    return delayMs;
  }
}
