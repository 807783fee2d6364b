/** What the request stack is told about an exchange: the addresses of its hosts, their limits, and how they refuse. */
import type { Quota } from './throttle/throttle.js';
import type { ReadRefusal } from './transport/error-map.js';

/** How the hosts of an exchange answer, besides the objects and rows themselves. */
export interface AnswerRules {
  /** What an answer says about its own refusal. */
  readonly readRefusal: ReadRefusal;
  /** Permits that a server has counted in its running window of this length, by the headers of an answer; 0 when they do not say. */
  readonly usedPermits: (headers: Readonly<Record<string, string>>, windowMs: number) => number;
}

/** The hosts as one run asks them. Addresses have no slash at their end. */
export interface ExchangeHosts extends AnswerRules {
  /** Quota buckets by name: what a server counts together. */
  readonly buckets: Readonly<Record<string, Quota>>;
  readonly archiveUrl: string;
  readonly listingUrl: string;
  /** The same objects as at `archiveUrl`. */
  readonly fallbackUrl: string | undefined;
  /** Addresses of REST, by the flag that moves each: `fapi-url`. */
  readonly restUrls: Readonly<Record<string, string>>;
  /** Addresses besides, to which an answer may redirect. */
  readonly knownUrls: readonly string[];
  /** The addresses that are banned when this one is, itself included. */
  readonly bannedWith: (url: string) => readonly string[];
}
