/** The values of `--limits`: limits of buckets, which cannot exceed those of the exchange. */
import type { BucketLimit } from '../../exchange/names.js';
import { usage } from '../../model/errors.js';
import { durationValue, parseDurationMs } from '../../model/units.js';
import { choice, invalid, type Parse } from './parsers.js';

export interface Limit {
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
    const [, name = '', amount = '', number = '', unit = ''] =
      /^\s*(\w+)\s*[=:]\s*(\d+)\s*\/\s*(?:(\d+)\s*)?([a-z]+)$/i.exec(text) ?? [];
    const givenMs = parseDurationMs(`${number === '' ? '1' : number}${unit}`) ?? 0;
    if (!(Number(amount) >= 1 && givenMs >= 1))
      throw invalid(text, where, 'a limit of a bucket', 'archive=100/s');
    const bucket = choice(Object.keys(known))(name, where);
    const most = known[bucket];
    if (most === undefined) throw new RangeError(bucket);
    const windowMs = most.isWindow ? most.windowMs : givenMs;
    const permits = Math.max(1, Math.floor((Number(amount) / givenMs) * windowMs));
    if (permits / windowMs > most.permits / most.windowMs)
      throw usage(
        `${where}: ${text} is above the limit of ${bucket}`,
        `at most ${bucket}=${most.permits}/${windowText(most.windowMs)}`,
      );
    return { bucket, permits, windowMs };
  };
}

/** `s`, `m` or `5m`. */
function windowText(windowMs: number): string {
  return durationValue(windowMs).replace(/^1(?=[a-z])/, '');
}
