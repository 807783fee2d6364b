/** The network figures of a run, for summary, closing block and events. */
import { HOUR_MS } from '../../model/units.js';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { Counters } from '../../model/counters.js';
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import { hostOf, type AttemptEnd } from '../../model/fetch.js';
import type { RetryEvent } from '../../model/observer.js';
import type { BreakerState } from '../../http/retry/host-breaker.js';

/** Upper bounds in seconds. The archive answers most requests in less than 0.1 s. */
export const LATENCY_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10] as const;

/** The index of the first bound that is not below the latency; the number of bounds if all are. */
export function latencyBucketOf(seconds: number): number {
  return LATENCY_BOUNDS_S.filter((bound) => bound < seconds).length;
}

/** One hour. Longer times count as one hour. */
const LONGEST_MS = HOUR_MS;

/**
 * `objects`, `bytes`: those that arrived · `requests`: attempts that were sent, `attempts`: ended ones, `failed`: those of them that failed ·
 * `latency`: answered attempts by `latencyBucketOf` · `retried`, `retriedOk`: requests with retries · `first`, `firstFailed`: requests with
 * a result of their first attempt · `errors`: failed attempts by code · `reasons`: retries by the error of the attempt before.
 */
export type RunCount =
  | 'objects'
  | 'bytes'
  | 'requests'
  | 'attempts'
  | 'failed'
  | 'retries'
  | `retried${'' | 'Ok'}`
  | `first${'' | 'Failed'}`
  | `${'errors' | 'reasons'}.${ErrorCode}`
  | `latency.${number}`;

type EndedAttempt = Pick<
  AttemptEnd,
  'request' | 'sentAtMs' | 'endedAtMs' | 'firstByteMs' | 'status' | 'error'
>;

export class Figures {
  #mostInFlight = 0;
  readonly #perRequest = createHistogram();
  readonly #firstByte = createHistogram();
  readonly #attempt = createHistogram();
  readonly #hosts = new Map<string, Host>();

  constructor(private readonly counts = new Counters<RunCount>()) {}

  begun(): void {
    this.counts.add('requests');
    this.#mostInFlight = Math.max(this.#mostInFlight, this.#inFlight);
  }

  ended(attempt: EndedAttempt): void {
    const { error, status = 'none' } = attempt;
    const ms = attempt.endedAtMs - attempt.sentAtMs;
    const host = this.#hostOf(hostOf(attempt.request.url));
    this.counts.add('attempts');
    host.statuses[status] = (host.statuses[status] ?? 0) + 1;
    if (attempt.firstByteMs !== undefined) record(this.#firstByte, attempt.firstByteMs);
    if (error === undefined) {
      record(this.#attempt, ms);
      record(host.attemptMs, ms);
      this.counts.add(`latency.${latencyBucketOf(ms / 1000)}`);
    } else this.counts.add('failed');
    if (error instanceof CryptodlError) this.counts.add(`errors.${error.code}`);
  }

  onRetry({ usesAttempt, error }: Pick<RetryEvent, 'usesAttempt' | 'error'>): void {
    if (!usesAttempt) return;
    this.counts.add('retries');
    this.counts.add(`reasons.${error.code}`);
  }

  onBreaker(name: string, state: BreakerState, leftMs: () => number): void {
    const host = this.#hostOf(name);
    host.breaker = state;
    host.leftMs = leftMs;
  }

  /** The breakers that are not closed. `leftMs`: before the host gets a request again; 0 for a breaker that is not open. */
  get openBreakers() {
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
    if (isOk || hasFailedFirst) this.counts.add('first');
    if (hasFailedFirst) this.counts.add('firstFailed');
    if (retries === 0) return;
    this.counts.add('retried');
    if (isOk) this.counts.add('retriedOk');
  }

  get figures() {
    const { counts } = this;
    const { p50, p95, p99 } = percentiles(this.#perRequest);
    const reasons: ByCode = counts.by('reasons');
    const errors: ByCode = counts.by('errors');
    const hosts = [...this.#hosts].map(([name, { statuses, attemptMs, breaker }]) => {
      return [name, { statuses: { ...statuses }, attemptMs: percentiles(attemptMs), breaker }] as const;
    });
    return {
      /** Attempts that were sent, including sidecars and listing pages. */
      requests: counts.of('requests'),
      inFlight: this.#inFlight,
      mostInFlight: this.#mostInFlight,
      retries: {
        /** Retries. The percentiles are of retries per request. */
        total: counts.of('retries'),
        /** Requests with retries, and those of them that succeeded. */
        requests: counts.of('retried'),
        succeeded: counts.of('retriedOk'),
        p50: Math.max(0, p50 - 1),
        p95: Math.max(0, p95 - 1),
        p99: Math.max(0, p99 - 1),
        /** Retries by the error of the attempt before. */
        reasons,
      },
      /** Requests with a result of their first attempt. `failed`: the first attempt failed, even if a retry succeeded. */
      firstAttempts: { requests: counts.of('first'), failed: counts.of('firstFailed') },
      /** From the request to the first byte of the answer, in milliseconds. */
      firstByteMs: percentiles(this.#firstByte),
      /** From the request to the end of an answered attempt, in milliseconds. */
      attemptMs: percentiles(this.#attempt),
      /** Failed attempts by code. */
      errors,
      /** By host and port: ended attempts by HTTP status (`none`: without an answer), and answered ones in milliseconds. */
      hosts: Object.fromEntries(hosts),
    };
  }

  get #inFlight(): number {
    return this.counts.of('requests') - this.counts.of('attempts');
  }

  #hostOf(name: string): Host {
    const known = this.#hosts.get(name);
    if (known !== undefined) return known;
    const host: Host = { statuses: {}, attemptMs: createHistogram(), breaker: 'closed', leftMs: () => 0 };
    this.#hosts.set(name, host);
    return host;
  }
}

type ByCode = Readonly<Partial<Record<ErrorCode, number>>>;

interface Host {
  readonly statuses: Record<string, number>;
  readonly attemptMs: RecordableHistogram;
  breaker: BreakerState;
  leftMs: () => number;
}

/** Histograms need whole numbers of at least 1. */
function record(histogram: RecordableHistogram, value: number): void {
  histogram.record(Math.min(LONGEST_MS, Math.max(1, Math.round(value))));
}

/** All 0 without values. */
function percentiles(histogram: RecordableHistogram) {
  if (histogram.count === 0) return { p50: 0, p95: 0, p99: 0 };
  return { p50: histogram.percentile(50), p95: histogram.percentile(95), p99: histogram.percentile(99) };
}
