/** `--max-duration`: from when on nothing new is begun, and what becomes of waits. */
import { setMaxListeners } from 'node:events';
import type { Clock, Timer } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';
import { durationText } from '../model/units.js';

export interface DeadlineOptions {
  readonly clock: Clock;
  /** From now on; undefined: there is no last moment. */
  readonly maxDurationMs: number | undefined;
  /** The error of a run that ends before its work begins. */
  readonly stop: AbortController;
  /** Told when nothing new is begun any more. */
  readonly onOver?: () => void;
}

/** Objects in flight still get quick retries and free permits; longer waits end. */
const GRACE_MS = 2000;

export class Deadline {
  readonly #options: DeadlineOptions;
  readonly #over = new AbortController();
  readonly #waitEnd = new AbortController();
  #timer: Timer | undefined;
  #isAtWork = false;
  #isEarly = false;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    const { clock, maxDurationMs, stop } = options;
    if (maxDurationMs === undefined) return;
    // Every request that waits listens.
    setMaxListeners(0, this.#waitEnd.signal);
    this.#timer = clock.timer(maxDurationMs, () => {
      this.#end();
    });
    stop.signal.addEventListener(
      'abort',
      () => {
        this.#waitEnd.abort(stop.signal.reason);
      },
      { once: true },
    );
  }

  /** Aborts when nothing is waited for any more, with the run at the latest; undefined: only with the run. */
  get waitSignal(): AbortSignal | undefined {
    return this.#options.maxDurationMs === undefined ? undefined : this.#waitEnd.signal;
  }

  /** The plan is complete: from now on, tasks that are not begun in time are reported by name. */
  beginWork(): void {
    this.#isAtWork = true;
  }

  /** Why nothing new is begun any more: an error for each object, which was not attempted. */
  readonly refusal = (): CryptodlError | undefined => {
    if (!this.#over.signal.aborted) return undefined;
    const error = new CryptodlError('time-over', `${this.#what()} was over before it was begun`);
    error.attempts = 0;
    return error;
  };

  /** Of a run that was ended before its work began: the error that says so. Others are given back. */
  asEarlyEnd(error: unknown): unknown {
    if (!this.#isEarly || !(error instanceof CryptodlError) || error.code !== 'interrupted') return error;
    return new CryptodlError('time-over', `${this.#what()} was over before anything was begun`, {
      hint: 'run the same command again, or with a longer --max-duration',
    });
  }

  /** It ended the run before its work began. */
  get isEarly(): boolean {
    return this.#isEarly;
  }

  /** Shorter when time is over; rejects when the run is ended. */
  async sleep(delayMs: number): Promise<void> {
    const { clock, stop } = this.#options;
    try {
      await clock.sleep(delayMs, AbortSignal.any([stop.signal, this.#over.signal]));
    } catch (error) {
      if (stop.signal.aborted) throw error;
    }
  }

  close(): void {
    this.#timer?.cancel();
  }

  #end(): void {
    const { clock, stop } = this.#options;
    if (stop.signal.aborted) return;
    if (!this.#isAtWork) {
      this.#isEarly = true;
      stop.abort(new CryptodlError('interrupted', `${this.#what()} was over`));
      return;
    }
    this.#over.abort();
    this.#options.onOver?.();
    this.#timer = clock.timer(GRACE_MS, () => {
      this.#waitEnd.abort(new CryptodlError('time-over', `${this.#what()} was over`));
    });
  }

  #what(): string {
    return `--max-duration ${durationText(this.#options.maxDurationMs ?? 0)}`;
  }
}
