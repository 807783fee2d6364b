/** Parsers for rate limits of the user, which cannot exceed those of the exchange. */
import { didYouMean, nearest } from '../text/did-you-mean.js';
import { usage } from '../model/errors.js';
import { numberText, parseDurationMs } from '../model/units.js';
import type { BucketLimit } from '../source/names.js';
import { given } from './parsers.js';
import type { Parse } from './parsers.js';

/** The maximum number of permits of a bucket in a window. */
export interface Limit {
  readonly text: string;
  readonly bucket: string;
  readonly permits: number;
  readonly windowMs: number;
}

const MINUTE_MS = 60_000;

/** `archive=100/s` or `futuresData=800/5m`, at most the limit of the exchange. */
export function limit(known: Readonly<Record<string, BucketLimit>>): Parse<Limit> {
  return (text, where) => {
    const [, bucket = '', amount = '', count = '', unit = ''] =
      /^(\w+)=(\d+)\/(\d*)(s|m|h|d)$/.exec(text) ?? [];
    const permits = Number(amount);
    const windowMs = parseDurationMs(`${count === '' ? '1' : count}${unit}`) ?? 0;
    if (!(permits >= 1 && windowMs >= 1)) {
      throw usage(`${where}: "${text}" is not a limit of a bucket`, given(where, 'archive=100/s'));
    }
    const most = Object.hasOwn(known, bucket) ? known[bucket] : undefined;
    if (most === undefined) {
      const names = Object.keys(known);
      throw usage(
        `${where}: "${bucket}" is not one of ${names.join(', ')}`,
        didYouMean(bucket, names),
        correctionOf(nearest(bucket, names), text),
      );
    }
    const highest = `${bucket}=${limitText(most)}`;
    if (most.isWindow && windowMs !== most.windowMs) {
      const rate = Math.floor((permits / windowMs) * most.windowMs);
      const value = `${bucket}=${Math.max(1, Math.min(rate, most.permits))}/${windowText(most.windowMs)}`;
      throw usage(
        `${where}: ${text}: the exchange counts ${bucket} in windows of ${windowText(most.windowMs, '1')}`,
        given(where, value),
        { value },
      );
    }
    if (permits / windowMs > most.permits / most.windowMs) {
      throw usage(
        `${where}: ${text} is above the limit of ${bucket}, ${limitText(most)}`,
        given(where, highest),
        {
          value: highest,
        },
      );
    }
    return { text, bucket, permits, windowMs };
  };
}

/** The text with the nearest name of a bucket. */
function correctionOf(bucket: string | undefined, text: string): { value: string } | undefined {
  return bucket === undefined ? undefined : { value: text.replace(/^\w+/, bucket) };
}

/** The maximum requests per minute of each bucket: at most the highest limit of all buckets. */
export function requestsPerMinute(known: Readonly<Record<string, BucketLimit>>): Parse<number> {
  const ranked = Object.entries(known).toSorted(([, one], [, other]) => perMinute(other) - perMinute(one));
  const [[name, largest] = ['', { permits: 0, windowMs: MINUTE_MS, isWindow: false }]] = ranked;
  const most = perMinute(largest);
  return (text, where) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= 1 && number <= most) return number;
    const isTooMuch = /^\d+$/.test(text) && number > most;
    const value = isTooMuch ? String(most) : '600';
    throw usage(
      isTooMuch
        ? `${where}: ${text} is above the highest limit, ${numberText(most)} in a minute (${name}: ${limitText(largest)})`
        : `${where}: "${text}" is not a whole number of at least 1`,
      given(where, value),
      isTooMuch ? { value } : undefined,
    );
  };
}

function perMinute({ permits, windowMs }: BucketLimit): number {
  return (permits / windowMs) * MINUTE_MS;
}

function limitText({ permits, windowMs }: BucketLimit): string {
  return `${permits}/${windowText(windowMs)}`;
}

/** `s`, `m` or `5m`. `one`: the number that is written for a single unit. */
function windowText(windowMs: number, one = ''): string {
  const [ms, unit] = windowMs % MINUTE_MS === 0 ? [MINUTE_MS, 'm'] : [1000, 's'];
  const count = windowMs / ms;
  return `${count === 1 ? one : count}${unit}`;
}

/** The name of an egress group, which becomes a part of the keys in Redis. */
export const groupName: Parse<string> = (value, where) => {
  if (/^[\w.-]{1,64}$/.test(value)) return value;
  throw usage(
    `${where}: "${value}" is not a name of up to 64 letters, digits, dots, hyphens and underscores`,
    given(where, 'office'),
  );
};
