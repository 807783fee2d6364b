/** The network figures of a run, for summary, closing block and events. */
import { createHistogram } from 'node:perf_hooks';
import type { RecordableHistogram } from 'node:perf_hooks';
import { CryptodlError } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import type { RetryEvent } from '../model/observer.js';
import { hostOf } from '../http/fetch.js';
import type { AttemptEnd } from '../http/fetch.js';
import type { OpenBreaker } from '../http/host-states.js';
import type { BreakerState } from '../http/retry/breaker.js';

interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface WireFigures {
  /** Attempts that were sent, including sidecars and listing pages. */
  readonly requests: number;
  readonly inFlight: number;
  readonly mostInFlight: number;
  readonly retries: Percentiles & {
    /** Retries. The percentiles are of retries per request. */
    readonly total: number;
    /** Requests with retries, and those of them that succeeded. */
    readonly requests: number;
    readonly succeeded: number;
    /** Retries by the error of the attempt before. */
    readonly reasons: Readonly<Partial<Record<ErrorCode, number>>>;
  };
  /** Requests with a result of their first attempt. `failed`: the first attempt failed, even if a retry succeeded. */
  readonly firstAttempts: { readonly requests: number; readonly failed: number };
  /** From the request to the first byte of the answer, in milliseconds. */
  readonly firstByteMs: Percentiles;
  /** From the request to the end of an answered attempt, in milliseconds. */
  readonly attemptMs: Percentiles;
  /** Failed attempts by code. */
  readonly errors: Readonly<Partial<Record<ErrorCode, number>>>;
  /** By host and port. */
  readonly hosts: Readonly<Record<string, HostFigures>>;
}

export interface HostFigures {
  /** Ended attempts by HTTP status; `none` for those without an answer. */
  readonly statuses: Readonly<Record<string, number>>;
  /** From the request to the end of an answered attempt, in milliseconds. */
  readonly attemptMs: Percentiles;
  readonly breaker: BreakerState;
}

/** The status of an attempt without an answer. */
const NO_STATUS = 'none';

/** One hour. Longer times count as one hour. */
const LONGEST_MS = 3_600_000;

export class Figures {
  #requests = 0;
  #inFlight = 0;
  #mostInFlight = 0;
  #retries = 0;
  #retried = 0;
  #retriedOk = 0;
  #first = 0;
  #firstFailed = 0;
  readonly #perRequest = createHistogram();
  readonly #firstByte = createHistogram();
  readonly #attempt = createHistogram();
  readonly #errors: Partial<Record<ErrorCode, number>> = {};
  readonly #reasons: Partial<Record<ErrorCode, number>> = {};
  readonly #hosts = new Map<string, Host>();

  begun(): void {
    this.#requests += 1;
    this.#inFlight += 1;
    this.#mostInFlight = Math.max(this.#mostInFlight, this.#inFlight);
  }

  ended(
    attempt: Pick<AttemptEnd, 'request' | 'sentAt' | 'endedAt' | 'firstByteMs' | 'status' | 'error'>,
  ): void {
    this.#inFlight -= 1;
    const host = this.#hostOf(hostOf(attempt.request.url));
    const status = attempt.status ?? NO_STATUS;
    host.statuses[status] = (host.statuses[status] ?? 0) + 1;
    if (attempt.firstByteMs !== undefined) record(this.#firstByte, attempt.firstByteMs);
    const { error } = attempt;
    if (error === undefined) {
      record(this.#attempt, attempt.endedAt - attempt.sentAt);
      record(host.attemptMs, attempt.endedAt - attempt.sentAt);
    } else if (error instanceof CryptodlError) this.#errors[error.code] = (this.#errors[error.code] ?? 0) + 1;
  }

  onRetry({ usesAttempt, error }: Pick<RetryEvent, 'usesAttempt' | 'error'>): void {
    if (!usesAttempt) return;
    this.#retries += 1;
    this.#reasons[error.code] = (this.#reasons[error.code] ?? 0) + 1;
  }

  onBreaker(name: string, state: BreakerState, leftMs: () => number): void {
    const host = this.#hostOf(name);
    host.breaker = state;
    host.leftMs = leftMs;
  }

  /** The breakers that are not closed. */
  get openBreakers(): OpenBreaker[] {
    return [...this.#hosts].flatMap(([host, { breaker: state, leftMs }]) => {
      if (state === 'closed') return [];
      return [{ host, state, leftMs: state === 'open' ? Math.round(leftMs()) : 0 }];
    });
  }

  /** `error`: the error of a failed request. */
  onRequestEnd(retries: number, error?: unknown): void {
    record(this.#perRequest, retries + 1);
    const isOk = error === undefined;
    const hasFailedFirst = retries > 0 || (error instanceof CryptodlError && error.hostFault);
    if (isOk || hasFailedFirst) this.#first += 1;
    if (hasFailedFirst) this.#firstFailed += 1;
    if (retries === 0) return;
    this.#retried += 1;
    if (isOk) this.#retriedOk += 1;
  }

  get figures(): WireFigures {
    const { p50, p95, p99 } = percentiles(this.#perRequest);
    return {
      requests: this.#requests,
      inFlight: this.#inFlight,
      mostInFlight: this.#mostInFlight,
      retries: {
        total: this.#retries,
        requests: this.#retried,
        succeeded: this.#retriedOk,
        p50: Math.max(0, p50 - 1),
        p95: Math.max(0, p95 - 1),
        p99: Math.max(0, p99 - 1),
        reasons: { ...this.#reasons },
      },
      firstAttempts: { requests: this.#first, failed: this.#firstFailed },
      firstByteMs: percentiles(this.#firstByte),
      attemptMs: percentiles(this.#attempt),
      errors: { ...this.#errors },
      hosts: Object.fromEntries([...this.#hosts].map(([name, host]) => [name, figuresOf(host)])),
    };
  }

  #hostOf(name: string): Host {
    const known = this.#hosts.get(name);
    if (known !== undefined) return known;
    const host: Host = { statuses: {}, attemptMs: createHistogram(), breaker: 'closed', leftMs: () => 0 };
    this.#hosts.set(name, host);
    return host;
  }
}

interface Host {
  readonly statuses: Record<string, number>;
  readonly attemptMs: RecordableHistogram;
  breaker: BreakerState;
  leftMs: () => number;
}

function figuresOf({ statuses, attemptMs, breaker }: Host): HostFigures {
  return { statuses: { ...statuses }, attemptMs: percentiles(attemptMs), breaker };
}

/** Histograms need whole numbers of at least 1. */
function record(histogram: RecordableHistogram, value: number): void {
  histogram.record(Math.min(LONGEST_MS, Math.max(1, Math.round(value))));
}

/** All 0 without values. */
function percentiles(histogram: RecordableHistogram): Percentiles {
  if (histogram.count === 0) return { p50: 0, p95: 0, p99: 0 };
  return { p50: histogram.percentile(50), p95: histogram.percentile(95), p99: histogram.percentile(99) };
}
