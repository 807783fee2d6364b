/** Parsers for rate limits of the user, which cannot exceed those of the exchange. */
import { usage } from '../model/errors.js';
import { durationValue, parseDurationMs } from '../model/units.js';
import type { BucketLimit } from '../source/names.js';
import { choice, given, invalid } from './parsers.js';
import type { Parse } from './parsers.js';

/** The maximum number of permits of a bucket in a window. */
export interface Limit {
  readonly text: string;
  readonly bucket: string;
  readonly permits: number;
  readonly windowMs: number;
}

/**
 * `archive=100/s` or `futuresData=800/5m`, at most the limit of the exchange. If the exchange counts in windows of its own, the rate is
 * that of such a window: `futuresData=100/m` is `futuresData=500/5m`.
 */
export function limit(known: Readonly<Record<string, BucketLimit>>): Parse<Limit> {
  return (text, where) => {
    const [, name = '', amount = '', count = '', unit = ''] =
      /^\s*(\w+)\s*[=:]\s*(\d+)\s*\/\s*(?:(\d+)\s*)?([a-z]+)$/i.exec(text) ?? [];
    const givenMs = parseDurationMs(`${count === '' ? '1' : count}${unit}`) ?? 0;
    if (!(Number(amount) >= 1 && givenMs >= 1))
      throw invalid(text, where, 'a limit of a bucket', 'archive=100/s');
    const bucket = choice(Object.keys(known))(name, where);
    const most = known[bucket];
    if (most === undefined) throw new RangeError(bucket);
    const windowMs = most.isWindow ? most.windowMs : givenMs;
    const permits = Math.max(1, Math.floor((Number(amount) / givenMs) * windowMs));
    if (permits / windowMs > most.permits / most.windowMs)
      throw usage(
        `${where}: ${text} is above the limit of ${bucket}, ${limitText(most)}`,
        given(where, `${bucket}=${limitText(most)}`),
      );
    return { text: `${bucket}=${permits}/${windowText(windowMs)}`, bucket, permits, windowMs };
  };
}

function limitText({ permits, windowMs }: BucketLimit): string {
  return `${permits}/${windowText(windowMs)}`;
}

/** `s`, `m` or `5m`. */
function windowText(windowMs: number): string {
  return durationValue(windowMs).replace(/^1(?=[a-z])/, '');
}
