/** The facts of an exchange that requests need: the addresses of its hosts, their limits, and the form of their refusals. */
import type { Rate } from './meter.js';
import type { Pace } from './paces.js';
import type { ReadRefusal } from '../transport/error-map.js';
import { MINUTE_MS } from '../../model/units.js';

interface WindowQuota {
  readonly permits: number;
  readonly windowSeconds: number;
  /** The user chose this limit: a higher limit that the server reports does not raise it. */
  readonly isChosen?: boolean;
}

/** The limit of a bucket: a rate, or a number of permits per window of the server. */
export type Quota = (Rate | WindowQuota) & {
  /** Further limits, set by the user. */
  readonly paces?: readonly Pace[];
  /** A ban (418) applies to all buckets of one family. */
  readonly family?: string | undefined;
};

/** The limits of the servers, by the name of the bucket. A server counts all requests of a bucket together. */
type Buckets = Readonly<Record<string, Quota>>;

export interface AnswerRules {
  readonly readRefusal: ReadRefusal;
  /** Permits that a server has counted in its current window of this length; 0 if no header reports them. */
  readonly usedPermits: (headers: Readonly<Record<string, string>>, windowMs: number) => number;
}

/** The hosts of one run. Addresses have no slash at their end. */
export interface ExchangeHosts extends AnswerRules {
  readonly buckets: Buckets;
  readonly archiveUrl: string;
  readonly listingUrl: string;
  /** The same objects as at `archiveUrl`. */
  readonly fallbackUrl: string | undefined;
  /** Addresses of REST. The key is the name of the option that sets the address: `fapi-url`. */
  readonly restUrls: Readonly<Record<string, string>>;
  /** Further addresses to which an answer may redirect. */
  readonly knownUrls: readonly string[];
  /** The next step for the user while the breaker of a host is open, if the hosts are not those of an exchange. */
  readonly hint?: string;
  /** The addresses that are banned together with this one, itself included. */
  readonly bannedWith: (url: string) => readonly string[];
}

export interface LimitOptions {
  readonly limits?:
    readonly { readonly bucket: string; readonly permits: number; readonly windowMs: number }[] | undefined;
  readonly requestIntervalMs?: number | undefined;
  readonly requestsPerMinute?: number | undefined;
}

/** The limits of a run: for each bucket the limit of the exchange, or a lower limit that the user set. */
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
