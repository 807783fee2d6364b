/** The times that a run loses: waits and failed attempts, and the delay of its own event loop. */
import type { AttemptEnd, WaitReason } from '../../model/fetch.js';
import type { RequestFollower } from '../../http/transport/measure.js';
import type { Clock } from '../../model/clock.js';
import { Counters } from '../../model/counters.js';
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** Error codes that are no failures of the connection: the run ended, or the host asked for a pause. */
const NO_FAILURES: ReadonlySet<ErrorCode> = new Set(['interrupted', 'rate-limited', 'banned']);

/**
 * Measures the wall time of waits and failed attempts. Waits overlap, so their sum is not wall time. Each moment is divided equally
 * among the requests that are in flight or wait: if 29 of 30 requests wait for a permit, a second of waiting costs 29/30 s. A request
 * that waits alone costs the whole second.
 */
export class Costs implements RequestFollower {
  /** Requests in flight or waiting. */
  #requests = 0;
  /** Milliseconds of a request that has been in flight or waiting since the beginning. */
  #shareMs = 0;
  #at: number;
  readonly #waiting = new Counters<WaitReason>();
  readonly #ms = new Counters<`waits.${WaitReason}` | `failures.${ErrorCode}`>();

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {
    this.#at = clock.monotonic();
  }

  waiting(reason: WaitReason): number {
    return this.#waiting.of(reason);
  }

  /** Whole milliseconds. Their sum is at most the time in which a request was in flight or waited. */
  get figures() {
    return { waits: rounded(this.#ms.by('waits')), failures: rounded(this.#ms.by('failures')) };
  }

  onAttempt(): (attempt: Pick<AttemptEnd, 'error'>) => void {
    const end = this.#begin();
    return ({ error }) => {
      const ms = end();
      if (error instanceof CryptodlError && !NO_FAILURES.has(error.code))
        this.#ms.add(`failures.${error.code}`, ms);
    };
  }

  onWait(reason: WaitReason): () => void {
    const end = this.#begin();
    this.#waiting.add(reason);
    return () => {
      this.#waiting.add(reason, -1);
      this.#ms.add(`waits.${reason}`, end());
    };
  }

  /** Begins a share. The returned function ends it and returns its milliseconds. */
  #begin(): () => number {
    const from = this.#advance();
    this.#requests += 1;
    return () => {
      const ms = this.#advance() - from;
      this.#requests -= 1;
      return ms;
    };
  }

  #advance(): number {
    const now = this.clock.monotonic();
    if (this.#requests > 0) this.#shareMs += (now - this.#at) / this.#requests;
    this.#at = now;
    return this.#shareMs;
  }
}

function rounded<Key extends string>(costs: Record<Key, number>): Partial<Record<Key, number>> {
  const entries = Object.entries<number>(costs).map(([key, ms]) => [key, Math.round(ms)] as const);
  return Object.fromEntries(entries.filter(([, ms]) => ms > 0)) as Partial<Record<Key, number>>;
}

/** Milliseconds between two samples. A measured value contains this interval, so it is subtracted. */
const RESOLUTION_MS = 20;
/** With a longer delay, this process may be the reason for a late first byte. */
const LATE_MS = 20;
const NANOSECONDS = 1e6;

export class LoopDelay {
  readonly #whole = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #recent = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #begun = performance.eventLoopUtilization();
  #wasLate = false;
  #calls = 0;

  start(): void {
    this.#begun = performance.eventLoopUtilization();
    this.#whole.enable();
    this.#recent.enable();
  }

  stop(): void {
    this.#whole.disable();
    this.#recent.disable();
  }

  /** Whether the mean delay was long. It is measured anew at each hundredth call. */
  isLate(): boolean {
    this.#calls += 1;
    if (this.#calls % 100 === 0 && this.#recent.count > 0) {
      this.#wasLate = delayMs(this.#recent.mean) > LATE_MS;
      this.#recent.reset();
    }
    return this.#wasLate;
  }

  /** Percentiles in milliseconds. `busyShare`: share of the time in which the event loop did not wait for events. */
  get figures(): { p50: number; p99: number; most: number; busyShare: number } {
    return {
      p50: delayMs(this.#whole.percentile(50)),
      p99: delayMs(this.#whole.percentile(99)),
      most: delayMs(this.#whole.max),
      busyShare: Math.round(performance.eventLoopUtilization(this.#begun).utilization * 100) / 100,
    };
  }
}

const delayMs = (nanoseconds: number): number =>
  Math.max(0, Math.round(nanoseconds / NANOSECONDS - RESOLUTION_MS));
