/** An exchange as the request stack knows it: the addresses of its hosts, their limits, and how they refuse. */
import type { Pace } from './throttle/paced-meter.js';
import type { Quota } from './throttle/throttle.js';
import type { ReadRefusal } from './transport/error-map.js';

/** The limits of a server, by the name of the bucket: it counts the requests of one bucket together. */
type Buckets = Readonly<Record<string, Quota>>;

/** How the hosts of an exchange answer, besides the objects and rows themselves. */
export interface AnswerRules {
  /** What an answer says about its own refusal. */
  readonly readRefusal: ReadRefusal;
  /** Permits that a server has counted in its running window of this length, by the headers of an answer; 0 when they do not say. */
  readonly usedPermits: (headers: Readonly<Record<string, string>>, windowMs: number) => number;
}

/** The hosts as one run asks them. Addresses have no slash at their end. */
export interface ExchangeHosts extends AnswerRules {
  readonly buckets: Buckets;
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

const MINUTE_MS = 60_000;

/** Limits that a user sets. */
export interface LimitOptions {
  readonly limits?:
    readonly { readonly bucket: string; readonly permits: number; readonly windowMs: number }[] | undefined;
  readonly requestIntervalMs?: number | undefined;
  readonly requestsPerMinute?: number | undefined;
}

/** The limits of a run: of each bucket the limit of the exchange, or a lower one of the user. */
export function limitedBuckets({ buckets }: { readonly buckets: Buckets }, options: LimitOptions): Buckets {
  const interval = options.requestIntervalMs ?? 0;
  const perMinute = options.requestsPerMinute;
  const paces: readonly Pace[] = [
    ...(interval > 0 ? [{ requests: 1, spanMs: interval }] : []),
    ...(perMinute === undefined ? [] : [{ requests: perMinute, spanMs: MINUTE_MS }]),
  ];
  const limited = Object.entries(buckets).map(([name, quota]): [string, Quota] => {
    const limit = options.limits?.findLast(({ bucket }) => bucket === name);
    if (limit === undefined) return [name, { ...quota, paces }];
    const { permits, windowMs } = limit;
    return [
      name,
      'permits' in quota
        ? { ...quota, permits, isChosen: true, paces }
        : { ...quota, paces: [...paces, { requests: permits, spanMs: windowMs }] },
    ];
  });
  return Object.fromEntries(limited);
}
