/** Notifications of a run in progress. Outcomes are reported separately. */
import type { CryptodlError, ErrorCode } from './errors.js';
import type { AttemptEnd } from './fetch.js';
import type { PlanTotals } from './task.js';

/** The plan of a run, shown before the first request for an object. */
export interface Announcement {
  /** `um klines 1m` */
  readonly what: string;
  readonly symbols: readonly string[];
  /** `2026-11-14 … 2026-11-20 (7 days)` */
  readonly range: string;
  /** Shown instead of `range` if the plan has no series. */
  readonly idle?: string | undefined;
  readonly notes: readonly string[];
  /** `csv and parquet` */
  readonly formats: string;
  readonly folder: string;
  readonly totals: PlanTotals;
  /** The terms of the data in one line, and the path of their notice, if this run has written it. */
  readonly terms?: { readonly summary: string; readonly notice: string } | undefined;
}

/** Emitted before the wait for another attempt. */
export interface RetryEvent {
  readonly traceId: string;
  /** The attempt that failed. */
  readonly attemptId: string;
  readonly url: string;
  /** Counts from 1. */
  readonly retry: number;
  /** False if the request only waits for a limit or an open breaker. */
  readonly usesAttempt: boolean;
  readonly error: CryptodlError;
  readonly delayMs: number;
}

export interface Observer {
  warn(message: string): void;
  /** Called before a wait that a flag requests, for example --wait-lock, and when this wait ends without result. */
  waiting(message: string): void;
  announce(announcement: Announcement): void;
  /** An object was received and verified. Its outcome follows when its file is written. */
  arrived(bytes: number): void;
  retry(event: RetryEvent): void;
  /** An attempt has ended; it succeeded if it has no error. */
  attempt(attempt: AttemptEnd): void;
  /** An event for `--json` only. */
  event(name: string, fields: object): void;
}

/** The requests to a host that is no host of the exchange. */
export interface RequestCount {
  /** Host and port. */
  readonly host: string;
  /** Ended attempts by method. `LIST`: a GET of a listing. */
  readonly requests: Readonly<Record<string, number>>;
  /** Ended attempts by HTTP status; `none` for those without an answer. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Repeated attempts by the error of the attempt before, also those after a refusal. */
  readonly retries: Readonly<Partial<Record<ErrorCode, number>>>;
  readonly errors: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Bytes of the bodies of answered attempts, and of their answers. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

export interface FollowedRequests {
  /** The requests since the end of the last run, also those before this call. `watcher` learns of attempts and retries until `end`: the run has ended. */
  follow(watcher: Pick<Observer, 'attempt' | 'retry'>): {
    readonly figures: () => RequestCount;
    readonly end: () => void;
  };
}

/** Notifies each observer in turn. */
export function joinObservers(observers: readonly Partial<Observer>[]): Observer {
  const tell = (act: (observer: Partial<Observer>) => void): void => {
    for (const observer of observers) act(observer);
  };
  return {
    warn: (message) => tell((one) => one.warn?.(message)),
    waiting: (message) => tell((one) => one.waiting?.(message)),
    announce: (announcement) => tell((one) => one.announce?.(announcement)),
    arrived: (bytes) => tell((one) => one.arrived?.(bytes)),
    retry: (event) => tell((one) => one.retry?.(event)),
    attempt: (attempt) => tell((one) => one.attempt?.(attempt)),
    event: (name, fields) => tell((one) => one.event?.(name, fields)),
  };
}

export const SILENT_OBSERVER: Observer = joinObservers([]);
