import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { FetchRequest, Layer } from '../fetch.js';
import { RateMeter, WindowMeter } from './meter.js';
import type { Meter, Rate } from './meter.js';
import { QuotaBucket } from './quota-bucket.js';

/** What a server counts together: a rate of ours, or its own budget per window. */
type Quota = Rate | { readonly permits: number; readonly windowSeconds: number };

export interface ThrottleOptions {
  readonly clock: Clock;
  /** By name; requests say which is theirs. */
  readonly buckets: Readonly<Record<string, Quota>>;
  readonly maxWaitMs: number;
  /** Told of every refusal that says how long it lasts. */
  readonly onBan?: (request: FetchRequest, error: CryptodlError, delayMs: number) => void;
}

/** What a 429 without a deadline costs the whole bucket. */
const PAUSE_MS = 5000;

/** Every attempt takes a permit of its bucket; a 429 pauses the bucket for everybody. */
export function throttle(options: ThrottleOptions): Layer {
  const { clock, maxWaitMs } = options;
  const buckets = new Map(
    Object.entries(options.buckets).map(([name, quota]) => [
      name,
      new QuotaBucket({ clock, name, meter: meterOf(quota, clock), maxWaitMs }),
    ]),
  );
  return (next) => async (request, context) => {
    const bucket = buckets.get(request.bucket);
    if (bucket === undefined) throw new CryptodlError('bug', `no quota bucket is called ${request.bucket}`);
    const { weight = 1, priority = 'normal' } = request;
    await bucket.take({ weight, priority }, context.signal);
    try {
      return await next(request, context);
    } catch (error) {
      if (error instanceof CryptodlError && error.code === 'rate-limited') {
        if (error.retryAfterMs !== undefined) options.onBan?.(request, error, error.retryAfterMs);
        bucket.pause(error.retryAfterMs ?? PAUSE_MS);
      }
      throw error;
    }
  };
}

function meterOf(quota: Quota, clock: Clock): Meter {
  if ('permitsPerSecond' in quota) return new RateMeter(quota, clock.monotonic());
  const offsetMs = clock.now() - clock.monotonic();
  const { permits, windowSeconds } = quota;
  return new WindowMeter({ permits, windowMs: windowSeconds * 1000 }, (nowMs) => nowMs + offsetMs);
}
