/** `--max-duration`: after this time nothing new begins, and waits end. */
import { setMaxListeners } from 'node:events';
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import { durationText } from '../../model/units.js';

export interface DeadlineOptions {
  readonly clock: Clock;
  /** Counts from the construction; undefined: no deadline. */
  readonly maxDurationMs: number | undefined;
  /** Stops the run. The deadline aborts it if the work has not begun. */
  readonly stop: AbortController;
  /** Called at a deadline during the work. */
  readonly onOver?: () => void;
}

/** After the deadline, requests of objects in flight may wait this much longer for retries and permits. */
const GRACE_MS = 2000;

export class Deadline {
  readonly #over = new AbortController();
  readonly #waitEnd = new AbortController();
  #timer: Timer | undefined;
  #isAtWork = false;
  /** Aborts when the waits of requests end: soon after the deadline, or when the run stops. Undefined without a deadline. */
  readonly waitSignal: AbortSignal | undefined;
  readonly #what: string;
  /** Whether the deadline stopped the run before its work began. */
  isEarly = false;

  constructor(private readonly options: DeadlineOptions) {
    const { clock, maxDurationMs, stop } = options;
    this.#what = `--max-duration ${durationText(maxDurationMs ?? 0)}`;
    if (maxDurationMs === undefined) return;
    this.waitSignal = AbortSignal.any([stop.signal, this.#waitEnd.signal]);
    // Each waiting request adds a listener.
    setMaxListeners(0, this.waitSignal);
    this.#timer = clock.timer(maxDurationMs, () => this.#end());
  }

  /** To be called when the plan is complete. From then on the deadline does not abort the run, but each task that has not begun fails. */
  beginWork(): void {
    this.#isAtWork = true;
  }

  /** A new `time-over` error for an object that is not attempted; undefined before the deadline. */
  readonly refusal = (): CryptodlError | undefined => {
    if (!this.#over.signal.aborted) return undefined;
    return new CryptodlError('time-over', `${this.#what} ended before this object started`, {
      attempts: 0,
    });
  };

  /** The `time-over` error for a run that the deadline stopped before its work began. Other errors come back unchanged. */
  asEarlyEnd(error: unknown): unknown {
    if (!this.isEarly || !(error instanceof CryptodlError) || error.code !== 'interrupted') return error;
    return new CryptodlError('time-over', `${this.#what} ended before the work started`, {
      hint: 'try again, or with a longer --max-duration',
    });
  }

  /** Ends early at the deadline. Rejects when the run is stopped. */
  async sleep(delayMs: number): Promise<void> {
    const { clock, stop } = this.options;
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
    const { clock, stop } = this.options;
    if (stop.signal.aborted) return;
    if (!this.#isAtWork) {
      this.isEarly = true;
      stop.abort(new CryptodlError('interrupted', `${this.#what} ended`));
      return;
    }
    this.#over.abort();
    this.options.onOver?.();
    this.#timer = clock.timer(GRACE_MS, () => {
      this.#waitEnd.abort(new CryptodlError('time-over', `${this.#what} ended`));
    });
  }
}
