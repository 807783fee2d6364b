/** The limits of a run: of each bucket the limit of the exchange, or a lower one of the user, and the concurrency. */
import type { Observer } from '../model/observer.js';
import type { Verb } from '../options/flag-spec.js';
import type { Options } from '../options/flags.js';
import type { Pace } from './throttle/paced-meter.js';
import type { Quota } from './throttle/throttle.js';

const MINUTE_MS = 60_000;

type Buckets = Readonly<Record<string, Quota>>;

export function limitedBuckets(
  { buckets }: { readonly buckets: Buckets },
  options: Pick<Options, 'limits' | 'requestIntervalMs' | 'requestsPerMinute'>,
): Buckets {
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

/** The maximum of `auto` by default. */
export const ARCHIVE_MOST = 128;
/** More requests at once do not help: at 0.3 s per answer, 15 in flight use up the largest REST budget, that of spot. */
export const REST_MOST = 20;

export function warnOfMany(
  verb: Verb | undefined,
  { concurrency, join: joined }: Pick<Options, 'concurrency' | 'join'>,
  observer: Pick<Observer, 'warn'>,
): void {
  const isOfRest = verb === 'metrics' && joined === undefined;
  const most = isOfRest ? REST_MOST : ARCHIVE_MOST;
  if (concurrency.kind !== 'fixed' || concurrency.limit <= most) return;
  const why = isOfRest
    ? 'series in flight gain nothing at REST, which counts requests per minute'
    : 'objects in flight gain nothing at the archive';
  observer.warn(
    `--concurrency ${concurrency.limit}: more than ${most} ${why}, and may get this address refused`,
  );
}
