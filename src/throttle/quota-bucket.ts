/** Permits of what a server counts together: weighted, by priority, paused by its refusals. */
import type { Clock, Timer } from '../clock.js';
import { CryptodlError, waitTooLong } from '../errors.js';
import type { OnWait, Priority } from '../fetch.js';
import { durationText } from '../units.js';
import { Lanes } from './lanes.js';
import type { Meter } from './meter.js';

export interface QuotaBucketOptions {
  readonly clock: Clock;
  readonly name: string;
  readonly meter: Meter;
  /** A longer pause is refused with `wait-too-long`. */
  readonly maxWaitMs: number;
}

export interface Permit {
  readonly weight: number;
  readonly priority: Priority;
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

/** Exact wake-up: no polling, and nothing is held across a wait. */
export class QuotaBucket {
  /** How often somebody had to wait, and how long all together. */
  waits = 0;
  waitedMs = 0;
  /** Refusals of the server that it asked too much: a burst of them counts once. */
  refusals = 0;
  readonly #options: QuotaBucketOptions;
  readonly #waiters = new Lanes<Waiter>();
  #pausedUntil = 0;
  #wasPaused = false;
  #pauses = 0;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #wakeUp: Timer | undefined;

  constructor(options: QuotaBucketOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the permit is taken; rejects with the signal's reason, `wait-too-long`, or for a weight that never fits.
   * `patience` ends a wait only: a permit that is there is given.
   */
  async take(permit: Permit, signal: AbortSignal, patience = signal): Promise<void> {
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
    if (this.#waiters.size === 0 && now >= this.#pausedUntil && meter.take(permit.weight, now) === 0) return;
    patience.throwIfAborted();
    this.waits += 1;
    try {
      await this.#wait(permit, patience);
    } finally {
      this.waitedMs += clock.monotonic() - now;
    }
  }

  /** The request was never sent. */
  giveBack(weight: number): void {
    const { clock, meter } = this.#options;
    meter.giveBack(weight, clock.monotonic());
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
  onRefused(sentAt: number, retryAfterMs: number | undefined): void {
    const { clock, meter } = this.#options;
    const now = clock.monotonic();
    const isNew = sentAt > this.#refusedAt;
    if (isNew) {
      this.refusals += 1;
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
      const leaveLane = this.#waiters.add(waiter, permit.priority, this.#options.clock.monotonic());
      const leave = (): void => {
        leaveLane();
        endWait?.();
      };
      signal.addEventListener('abort', onAbort, { once: true });
      // Whoever comes later changes nothing for those before.
      if (this.#waiters.first() === waiter) this.#wake();
    });
  }

  /**
   * Nothing leaves before `delayMs` have passed. A shorter pause does not end a longer one. Throws `wait-too-long`,
   * and refuses with it whoever waits already.
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
    const { clock, maxWaitMs } = this.#options;
    const leftMs = this.#pausedUntil - clock.monotonic();
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
    const { clock, meter } = this.#options;
    for (let first = this.#waiters.first(); first !== undefined; first = this.#waiters.first()) {
      const now = clock.monotonic();
      const delayMs = Math.max(this.#pausedUntil - now, 0) || meter.take(first.weight, now);
      if (delayMs > 0) {
        // Rounding may leave a wait too small to move the time: then the same would be asked for ever.
        this.#wakeUp = clock.timer(Math.max(1, Math.ceil(delayMs)), () => {
          this.#wake();
        });
        return;
      }
      first.grant();
    }
  }
}
