import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { Layer } from '../fetch.js';
import { TokenBucket } from './token-bucket.js';

export interface ThrottleOptions {
  readonly clock: Clock;
  /** Keyed by what the server counts together. */
  readonly buckets: Readonly<Record<string, { readonly permitsPerSecond: number; readonly burst: number }>>;
  readonly maxWaitMs: number;
}

/** What a 429 without a deadline costs the whole bucket. */
const PAUSE_MS = 5000;

/** Every attempt takes a permit of its bucket; a 429 pauses the bucket for everybody. */
export function throttle(options: ThrottleOptions): Layer {
  const buckets = new Map(
    Object.entries(options.buckets).map(([name, limits]) => [
      name,
      new TokenBucket(options.clock, { ...limits, maxWaitMs: options.maxWaitMs }),
    ]),
  );
  return (next) => async (request, context) => {
    const bucket = buckets.get(request.bucket);
    if (bucket === undefined) throw new CryptodlError('bug', `no quota bucket is called ${request.bucket}`);
    await bucket.take(context.signal);
    try {
      return await next(request, context);
    } catch (error) {
      if (error instanceof CryptodlError && error.code === 'rate-limited')
        bucket.pause(error.retryAfterMs ?? PAUSE_MS);
      throw error;
    }
  };
}
