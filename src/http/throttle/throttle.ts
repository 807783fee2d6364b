/** The permits of all requests of a run: one bucket per limit of a server. */
import type { Clock } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import type { ErrorCode } from '../../model/errors.js';
import { SharedResources } from '../../model/io.js';
import type { FetchRequest, Layer } from '../fetch.js';
import type { BucketState, GroupState } from '../host-states.js';
import { ProcessCount, RateMeter, WindowMeter } from './meter.js';
import type { Budget, Rate, WindowCount } from './meter.js';
import type { Pace } from './paces.js';
import type { LongestWait } from './priority-queue.js';
import { QuotaBucket } from './quota-bucket.js';
import type { LimiterTally } from './quota-bucket.js';
import { ServerClock } from './server-clock.js';

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

export interface ThrottleOptions {
  readonly clock: Clock;
  /** Buckets by name. Each request names its bucket. */
  readonly buckets: Readonly<Record<string, Quota>>;
  readonly maxWaitMs: number;
  /** Functions that return the longest pause of a bucket in milliseconds. A longer one is refused with `rate-limited`. */
  readonly longestWaitMs?: Readonly<Record<string, LongestWait>>;
  /** The count of a bucket; by default that of this process alone. */
  readonly countOf?: (bucket: string) => WindowCount;
  /** The state of the egress group that counts the windows. */
  readonly groupState?: (() => GroupState) | undefined;
  /** Permits that the server has counted in its current window of this length; 0 if no header reports them. */
  readonly usedPermits: (headers: Readonly<Record<string, string>>, windowMs: number) => number;
  /** Milliseconds that are left of a ban of this bucket and host, also of one that another run recorded. */
  readonly banLeftMs?: (request: FetchRequest) => Promise<number>;
  /** Buckets that several runs of this process share; by default the run has its own. */
  readonly shared?: SharedResources | undefined;
  /** Called for each refusal that has a duration: `delayMs`. */
  readonly onBan?: (request: FetchRequest, error: CryptodlError, delayMs: number) => void;
}

/** Waits and refusals of all buckets together. */
export interface ThrottleFigures {
  /** Number of waits for a permit, and their sum in milliseconds. */
  readonly waits: number;
  readonly waitedMs: number;
  /** Number of refusals by servers (429, 418). */
  readonly refusals: number;
  /** The same per bucket, for buckets with waits or refusals. */
  readonly buckets: Readonly<Record<string, BucketFigures>>;
  /** The egress group that counts the windows. */
  readonly group?: GroupState;
}

interface BucketFigures extends Readonly<LimiterTally> {
  /** The waits were mostly for a limit that the user set, or the user set the limit of the bucket. */
  readonly isChosen: boolean;
}

/** All buckets of a run, by name. */
export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #buckets: ReadonlyMap<string, ServerBucket>;
  /** Waits and refusals of this run; the buckets may be shared with others. */
  readonly #tallies = new Map<string, LimiterTally>();
  #lastDate = { header: '', time: Number.NaN };

  constructor(options: ThrottleOptions) {
    this.#options = options;
    const { shared = new SharedResources() } = options;
    const quotas = Object.entries(options.buckets);
    this.#buckets = new Map(
      quotas.map(([name, quota]) => [name, sharedBucket(name, quota, options, shared)]),
    );
  }

  get figures(): ThrottleFigures {
    const buckets = [...this.#tallies].flatMap(([name, { waits, waitedMs, refusals }]) => {
      if (waits + refusals === 0) return [];
      const { bucket, quota } = this.#of(name);
      const isChosen = bucket.isPaced || ('permits' in quota && quota.isChosen === true);
      return [[name, { waits, waitedMs: Math.round(waitedMs), refusals, isChosen }] as const];
    });
    const sum = (of: 'waits' | 'waitedMs' | 'refusals'): number =>
      buckets.reduce((total, [, figures]) => total + figures[of], 0);
    return {
      waits: sum('waits'),
      waitedMs: sum('waitedMs'),
      refusals: sum('refusals'),
      buckets: Object.fromEntries(buckets),
      ...(this.#options.groupState !== undefined && { group: this.#options.groupState() }),
    };
  }

  /** The buckets that this run has used, at this moment. */
  get states(): BucketState[] {
    const now = this.#options.clock.monotonic();
    return [...this.#tallies.keys()].map((name) => {
      const { bucket, window } = this.#of(name);
      const group = window === undefined ? undefined : this.#options.groupState?.();
      return { name, ...bucket.state, window: window?.state(now), ...(group !== undefined && { group }) };
    });
  }

  /** Takes the limit that the exchange reports. It replaces the configured limit, unless the user chose a lower one. */
  setBudget(bucket: string, budget: Budget): void {
    const { window, quota } = this.#of(bucket);
    if (window === undefined || !('permits' in quota)) return;
    const chosen = (quota.permits / (quota.windowSeconds * 1000)) * budget.windowMs;
    const permits = quota.isChosen === true ? Math.min(budget.permits, Math.floor(chosen)) : budget.permits;
    window.budget = { ...budget, permits };
  }

  /** Pauses a bucket after a refusal that another program got. Requests for which the pause is too long are refused. */
  pause(bucket: string, delayMs: number): void {
    try {
      this.#of(bucket).bucket.pause(delayMs);
    } catch {
      // No request of this run got the refusal, and perhaps it has no such bucket.
    }
  }

  /** The layer: each attempt takes a permit of its bucket. A 429 pauses the whole bucket. */
  readonly layer: Layer = (next) => async (request, context) => {
    const { clock } = this.#options;
    const { bucket, window, time } = this.#of(request.bucket);
    const { weight = 1, priority = 'normal' } = request;
    const { banLeftMs } = this.#options;
    const banMs = banLeftMs === undefined ? 0 : await banLeftMs(request);
    const longestWaitMs = this.#options.longestWaitMs?.[request.bucket];
    if (banMs > 0) bucket.pause(banMs, longestWaitMs);
    const { onWait } = context;
    await bucket.take(
      { weight, priority, onWait, longestWaitMs },
      context.signal,
      context.waitSignal,
      this.#tallyOf(request.bucket),
    );
    if (context.signal.aborted) {
      bucket.giveBack(weight);
      context.signal.throwIfAborted();
    }
    const sentAt = clock.monotonic();
    try {
      const response = await next(request, context);
      bucket.onTaken(sentAt);
      const now = clock.monotonic();
      const date = this.#timeOf(response.headers['date']);
      if (!Number.isNaN(date)) time.onAnswer(date, sentAt, now);
      window?.onUsed(this.#options.usedPermits(response.headers, window.windowMs), date, now);
      return response;
    } catch (error) {
      if (error instanceof CryptodlError) this.#onError(request, error, sentAt);
      throw error;
    }
  };

  /** Epoch milliseconds of a `Date` header; NaN without one. Answers of the same second have the same header. */
  #timeOf(header = ''): number {
    if (header !== this.#lastDate.header) this.#lastDate = { header, time: Date.parse(header) };
    return this.#lastDate.time;
  }

  #onError(request: FetchRequest, error: CryptodlError, sentAt: number): void {
    if (error.code !== 'rate-limited' && error.code !== 'banned') return;
    const { retryAfterMs } = error;
    // First all buckets of the family are paused. Only then an error for a too long pause is thrown.
    const tooLong = this.#refusedWith(request.bucket, error.code).flatMap((name) => {
      if (retryAfterMs !== undefined)
        this.#options.onBan?.({ ...request, bucket: name }, error, retryAfterMs);
      try {
        const longestWaitMs = this.#options.longestWaitMs?.[name];
        this.#of(name).bucket.onRefused(sentAt, retryAfterMs, this.#tallyOf(name), longestWaitMs);
        return [];
      } catch (longer) {
        return [longer as Error];
      }
    });
    if (tooLong[0] !== undefined) throw tooLong[0];
  }

  /** The buckets to which a refusal applies: a ban applies to the whole family. */
  #refusedWith(name: string, code: ErrorCode): string[] {
    const { family } = this.#of(name).quota;
    const isOfFamily = code === 'banned' && family !== undefined;
    return [...this.#buckets].flatMap(([other, { quota }]) =>
      other === name || (isOfFamily && quota.family === family) ? other : [],
    );
  }

  #tallyOf(name: string): LimiterTally {
    const tally = this.#tallies.get(name) ?? { waits: 0, waitedMs: 0, refusals: 0 };
    this.#tallies.set(name, tally);
    return tally;
  }

  #of(name: string): ServerBucket {
    const known = this.#buckets.get(name);
    if (known === undefined) throw new CryptodlError('bug', `no quota bucket is called ${name}`);
    return known;
  }
}

interface ServerBucket {
  readonly quota: Quota;
  readonly bucket: QuotaBucket;
  readonly time: ServerClock;
  /** Undefined for a rate. */
  readonly window: WindowMeter | undefined;
}

/**
 * A bucket that the runs of one process share. Buckets with equal options are one bucket. Buckets of one name with different
 * options share the count of permits, so that all runs together stay below the limit of the exchange.
 */
function sharedBucket(
  name: string,
  quota: Quota,
  { clock, maxWaitMs, countOf }: ThrottleOptions,
  shared: SharedResources,
): ServerBucket {
  return shared.once(`bucket ${JSON.stringify([name, quota, maxWaitMs])}`, () => {
    const count = shared.once<WindowCount>(`count ${name}`, () => countOf?.(name) ?? new ProcessCount());
    const waits = { clock, name, maxWaitMs, paces: quota.paces };
    const localOffsetMs = clock.now() - clock.monotonic();
    const time = new ServerClock(() => count.offsetMs ?? localOffsetMs);
    if ('permitsPerSecond' in quota) {
      const meter = shared.once(`rate ${name}`, () => new RateMeter(quota, clock.monotonic()));
      return { quota, time, window: undefined, bucket: new QuotaBucket({ ...waits, meter }) };
    }
    const budget = { permits: quota.permits, windowMs: quota.windowSeconds * 1000 };
    const window = new WindowMeter(budget, (nowMs) => time.at(nowMs), count);
    const bucket = new QuotaBucket({ ...waits, meter: window });
    count.onChange?.(() => {
      bucket.wake();
    });
    return { quota, time, window, bucket };
  });
}
