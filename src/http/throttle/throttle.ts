/** The permits of all requests of a run: one bucket per limit of a server. */
import type { Clock } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import type { ErrorCode } from '../../model/errors.js';
import { SharedResources } from '../../model/io.js';
import type { Observer } from '../../model/observer.js';
import { bucketOfPlace, placeOf } from '../bans.js';
import type { Bans } from '../bans.js';
import { limitedBuckets } from '../exchange-hosts.js';
import type { ExchangeHosts, LimitOptions, Quota } from '../exchange-hosts.js';
import type { FetchRequest, Layer } from '../../model/fetch.js';
import type { BucketState } from '../host-states.js';
import type { Failover } from '../retry/fallback-host.js';
import type { EgressGroup } from './group.js';
import { GroupCount } from './group-count.js';
import { ProcessCount, RateMeter, ServerClock, WindowMeter } from './meter.js';
import type { Budget, WindowCount } from './meter.js';
import type { LongestWait } from './priority-queue.js';
import { QuotaBucket } from './quota-bucket.js';
import type { LimiterTally, QuotaBucketOptions } from './quota-bucket.js';
import { SharedCount } from './shared-count.js';

export interface ThrottleSetup {
  readonly options: LimitOptions & { readonly maxWaitMs: number };
  readonly clock: Clock;
  readonly hosts: ExchangeHosts;
  readonly bans: Pick<Bans, 'leftMs' | 'record'>;
  readonly observer: Pick<Observer, 'warn'>;
  readonly stateFolder: string | undefined;
  readonly failover?: Failover | undefined;
  readonly common?: SharedResources | undefined;
  readonly group?: EgressGroup | undefined;
  /** The proxy whose address the servers see, if there are several. */
  readonly via?: string | undefined;
}

export interface ThrottleFigures {
  /** Number of waits for a permit, and their sum in milliseconds. */
  readonly waits: number;
  readonly waitedMs: number;
  /** Number of refusals by servers (429, 418). */
  readonly refusals: number;
  /** The same per bucket, for buckets with waits or refusals. */
  readonly buckets: Readonly<Record<string, BucketFigures>>;
  readonly group?: EgressGroup['state'];
}

interface BucketFigures extends Readonly<LimiterTally> {
  /** The waits were mostly for a limit that the user set, or the user set the limit of the bucket. */
  readonly isChosen: boolean;
}

export class Throttle {
  readonly #setup: ThrottleSetup;
  readonly #buckets: ReadonlyMap<string, ServerBucket>;
  /** Waits and refusals of this run; the buckets may be shared with others. */
  readonly #tallies = new Map<string, LimiterTally>();
  #lastDate = { header: '', time: Number.NaN };

  constructor(setup: ThrottleSetup, countOf = countsOf(setup)) {
    const { clock, options, hosts, group } = setup;
    this.#setup = setup;
    const shared = sharedBuckets(setup);
    const waits = { clock, maxWaitMs: options.maxWaitMs };
    this.#buckets = new Map(
      Object.entries(limitedBuckets(hosts, options)).map(([name, quota]) => [
        name,
        sharedBucket(quota, { ...waits, name }, countOf, shared),
      ]),
    );
    group?.onBan(({ place, until }) => this.pause(bucketOfPlace(place), until - clock.monotonic()));
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
      ...this.#group,
    };
  }

  /** The buckets that this run has used, at this moment. */
  get states(): BucketState[] {
    const now = this.#setup.clock.monotonic();
    return [...this.#tallies.keys()].map((name) => {
      const { bucket, window } = this.#of(name);
      return { name, ...bucket.state, window: window?.state(now), ...(window && this.#group) };
    });
  }

  get #group(): Pick<ThrottleFigures, 'group'> {
    const { group } = this.#setup;
    return group === undefined ? {} : { group: group.state };
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
    const { clock, bans, hosts, via } = this.#setup;
    const { bucket, window, time } = this.#of(request.bucket);
    const { weight = 1, priority = 'normal' } = request;
    const banMs = await bans.leftMs(placeOf(request.bucket, request.url, via));
    const longestWaitMs = this.#longestWaitOf(request.bucket);
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
      window?.onUsed(hosts.usedPermits(response.headers, window.budget.windowMs), date, now);
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
      if (retryAfterMs !== undefined) this.#recordBan(name, request.url, error.message, retryAfterMs);
      try {
        const longestWaitMs = this.#longestWaitOf(name);
        this.#of(name).bucket.onRefused(sentAt, retryAfterMs, this.#tallyOf(name), longestWaitMs);
        return [];
      } catch (longer) {
        return [longer as Error];
      }
    });
    if (tooLong[0] !== undefined) throw tooLong[0];
  }

  #recordBan(bucket: string, url: string, why: string, delayMs: number): void {
    const { clock, bans, hosts, via } = this.#setup;
    const until = clock.now() + delayMs;
    for (const kin of hosts.bannedWith(url)) bans.record(placeOf(bucket, kin, via), { until, why });
  }

  /** Undefined for the buckets of REST, because a wait for its limits is usual. */
  #longestWaitOf(bucket: string): LongestWait {
    return ['archive', 'listing'].includes(bucket) ? this.#setup.failover?.longestWaitMs : undefined;
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

/** An egress group counts its windows in Redis, other runs of a machine count them in the state folder. */
function countsOf(setup: ThrottleSetup): (bucket: string) => WindowCount {
  const { observer, stateFolder, clock, group, via } = setup;
  const ofProxy = via === undefined ? '' : `-via-${via.replaceAll(/[^\w.-]/g, '_')}`;
  const warn = (text: string): void => observer.warn(text);
  return (bucket) => {
    if (group !== undefined) return new GroupCount(group, bucket, clock);
    if (stateFolder === undefined) return new ProcessCount();
    return new SharedCount({ folder: stateFolder, name: bucket + ofProxy, warn });
  };
}

/** Jobs of one process share their buckets if they have the same hosts. */
function sharedBuckets({ common, hosts, stateFolder, group, via }: ThrottleSetup): SharedResources {
  const urls = [hosts.archiveUrl, hosts.listingUrl, ...Object.values(hosts.restUrls)];
  const name = `buckets ${JSON.stringify([stateFolder, group?.id, via, ...urls])}`;
  return common?.once(name, () => new SharedResources()) ?? new SharedResources();
}

/**
 * A bucket that the runs of one process share. Buckets with equal options are one bucket. Buckets of one name with different
 * options share the count of permits, so that all runs together stay below the limit of the exchange.
 */
function sharedBucket(
  quota: Quota,
  waits: Pick<QuotaBucketOptions, 'clock' | 'maxWaitMs' | 'name'>,
  countOf: (bucket: string) => WindowCount,
  shared: SharedResources,
): ServerBucket {
  const { clock, maxWaitMs, name } = waits;
  return shared.once(`bucket ${JSON.stringify([name, quota, maxWaitMs])}`, () => {
    const count = shared.once(`count ${name}`, () => countOf(name));
    const localOffsetMs = clock.now() - clock.monotonic();
    const time = new ServerClock(() => count.offsetMs ?? localOffsetMs);
    const { paces } = quota;
    if ('permitsPerSecond' in quota) {
      const meter = shared.once(`rate ${name}`, () => new RateMeter(quota, clock.monotonic()));
      return { quota, time, window: undefined, bucket: new QuotaBucket({ ...waits, paces, meter }) };
    }
    const budget = { permits: quota.permits, windowMs: quota.windowSeconds * 1000 };
    const window = new WindowMeter(budget, (nowMs) => time.at(nowMs), count);
    const bucket = new QuotaBucket({ ...waits, paces, meter: window });
    count.onChange?.(() => bucket.wake());
    return { quota, time, window, bucket };
  });
}
