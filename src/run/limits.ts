/** What a run takes of each bucket: what the venue allows, or less where the user says so. */
import type { Options } from '../options/flags.js';
import type { Pace } from '../throttle/paced-meter.js';
import type { Quota } from '../throttle/throttle.js';
import type { Venue } from '../venue/venue.js';

const MINUTE_MS = 60_000;

type Buckets = Venue['buckets'];

export function limitedBuckets(
  { buckets }: Venue,
  options: Pick<Options, 'limits' | 'request-interval' | 'requests-per-minute'>,
): Readonly<Record<keyof Buckets, Quota>> {
  const interval = options['request-interval'] ?? 0;
  const perMinute = options['requests-per-minute'];
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
  return Object.fromEntries(limited) as Record<keyof Buckets, Quota>;
}
