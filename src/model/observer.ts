/** Who is told of a run while it goes on, besides its outcomes. */
import type { RetryEvent } from './errors.js';
import type { AttemptEnd } from '../http/fetch.js';
import type { PlanTotals } from './task.js';

/** What is going to be done, before the first byte. */
export interface Announcement {
  /** `um klines 1m` */
  readonly what: string;
  /** `2026-11-14 … 2026-11-20 (7 days)` */
  readonly range: string;
  /** Said in place of it when there is nothing to do. */
  readonly idle?: string;
  /** Further lines for people. */
  readonly notes: readonly string[];
  /** `parquet in data` */
  readonly destination: string;
  readonly totals: PlanTotals;
}

export interface Observer {
  warn(message: string): void;
  /** Told before a long wait that somebody asked for: for what, and for how long. */
  waiting(message: string): void;
  announce(announcement: Announcement): void;
  /** Work begins; `inFlight` counts the objects under way. */
  start(totals: PlanTotals, inFlight: () => number): void;
  /** An object of so many bytes is here and verified; what becomes of it is told when its file is written. */
  arrived(bytes: number): void;
  retry(event: RetryEvent): void;
  /** An attempt on the wire has ended, well when there is no error. */
  attempt(attempt: AttemptEnd): void;
  /** Anything that only programs want to know. */
  event(name: string, fields: object): void;
}

/** Lets everything pass. */
export const SILENT_OBSERVER: Observer = {
  warn: () => undefined,
  waiting: () => undefined,
  announce: () => undefined,
  start: () => undefined,
  arrived: () => undefined,
  retry: () => undefined,
  attempt: () => undefined,
  event: () => undefined,
};
