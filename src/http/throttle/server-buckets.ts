/** The buckets of the servers. Runs with the same `SharedResources` share them. */
import { SECOND_MS } from '../../model/units.js';
import type { Clock } from '../../model/clock.js';
import { SharedResources } from '../../model/shared-resources.js';
import type { Observer } from '../../model/observer.js';
import type { Bans } from './bans.js';
import type { ExchangeHosts, LimitOptions, Quota } from './exchange-hosts.js';
import type { Failover } from './failover.js';
import type { EgressGroup } from './group.js';
import { GroupCount } from './group-count.js';
import { RateMeter, type Meter } from './meter.js';
import { ProcessCount, SharedCount, type WindowCount, type Budget } from './window-count.js';
import { QuotaBucket, type QuotaBucketOptions } from './quota-bucket.js';

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

export interface ServerBucket {
  readonly quota: Quota;
  readonly bucket: QuotaBucket;
  readonly time: ServerClock;
  /** Undefined for a rate. */
  readonly window: WindowMeter | undefined;
}

/** An egress group counts its windows in Redis, other runs of a machine count them in the state folder. */
export function countsOf(setup: ThrottleSetup): (bucket: string) => WindowCount {
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
export function sharedBuckets({ common, hosts, stateFolder, group, via }: ThrottleSetup): SharedResources {
  const urls = [hosts.archiveUrl, hosts.listingUrl, ...Object.values(hosts.restUrls)];
  const name = `buckets ${JSON.stringify([stateFolder, group?.id, via, ...urls])}`;
  return common?.once(name, () => new SharedResources()) ?? new SharedResources();
}

/**
 * A bucket that the runs of one process share. Buckets with equal options are one bucket. Buckets of one name with different
 * options share the count of permits, so that all runs together stay below the limit of the exchange.
 */
export function sharedBucket(
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

// A meter for a budget per window of the server's clock.

/** When this share of the budget is used, the rest is spread over the rest of the window. */
const SLOW_FROM = 0.8;

/**
 * At most `permits` in each window of the server's clock. The server's own count includes other clients of the same
 * address, and the shared count includes other processes of this machine.
 */
export class WindowMeter implements Meter {
  #window = Number.NaN;
  #slowFromMs: number | undefined;

  constructor(
    /** The exchange may tell a new one. */
    public budget: Budget,
    private readonly serverTime: (nowMs: number) => ServerTime,
    private readonly count: WindowCount,
  ) {}

  get most(): number {
    return this.budget.permits;
  }

  get isAsking(): boolean {
    return this.count.isAsking === true;
  }

  /** `leftMs`: milliseconds until the window ends. */
  state(nowMs: number) {
    const { window, leftMs } = this.#enter(nowMs);
    return { used: this.count.used(window), permits: this.budget.permits, leftMs: Math.round(leftMs) };
  }

  take(weight: number, nowMs: number): number {
    const { permits, windowMs } = this.budget;
    const { window, elapsedMs, leftMs, isSure } = this.#enter(nowMs);
    // Near the boundary of a window, it is unknown in which window the server will count the request.
    if (!isSure) return leftMs;
    const used = this.count.used(window);
    const slow = permits * SLOW_FROM;
    const isSlow = used + weight > slow && used + weight <= permits && !this.count.holds?.(window, weight);
    // The first request of a window never waits here. Otherwise a heavy request would never be sent.
    if (isSlow && used > 0) {
      this.#slowFromMs ??= elapsedMs;
      const share = (used + weight - slow) / (permits - slow);
      const dueMs = this.#slowFromMs + share * (windowMs - this.#slowFromMs);
      if (dueMs > elapsedMs && dueMs < windowMs) return dueMs - elapsedMs;
    }
    const delayMs = this.count.take(window, weight, this.budget, elapsedMs);
    return Math.min(delayMs, leftMs);
  }

  giveBack(weight: number, nowMs: number): void {
    this.count.giveBack(this.#enter(nowMs).window, weight);
  }

  /** Takes the server's count for its window at `dateMs` (NaN: unknown). It can only raise the count of this meter. */
  onUsed(used: number, dateMs: number, nowMs: number): void {
    const { window, isSure } = this.#enter(nowMs);
    // A count of the previous window is not valid for this one. A `Date` header has whole seconds; so have the windows.
    const isOfThis = Number.isNaN(dateMs) ? isSure : Math.floor(dateMs / this.budget.windowMs) === window;
    // A count beyond the budget has no further meaning.
    if (isOfThis) this.count.raise(window, Math.min(used, this.budget.permits));
  }

  onExhausted(nowMs: number): number {
    const { window, leftMs } = this.#enter(nowMs);
    this.count.raise(window, this.budget.permits);
    return leftMs;
  }

  /**
   * The current window by the earliest possible time of the server, `elapsedMs` after its beginning and `leftMs` before its end.
   * `isSure`: the latest possible time of the server lies in the same window.
   */
  #enter(nowMs: number): { window: number; elapsedMs: number; leftMs: number; isSure: boolean } {
    const { windowMs } = this.budget;
    const { fromMs, toMs } = this.serverTime(nowMs);
    const window = Math.floor(fromMs / windowMs);
    if (window !== this.#window) {
      this.#window = window;
      this.#slowFromMs = undefined;
    }
    const elapsedMs = fromMs - window * windowMs;
    const isSure = Math.floor(toMs / windowMs) === window;
    return { window, elapsedMs, leftMs: windowMs - elapsedMs, isSure };
  }
}

interface ServerTime {
  /** Epoch milliseconds. The time of the server lies between `fromMs` and `toMs`. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Slower answers are ignored: with bounds as wide as a window, the current window would never be known. */
const SLOWEST_MS = 10_000;

/** The least and the greatest difference (server minus local, in ms) that explain an answer: a `Date` header has whole seconds (RFC 9110, 5.6.7). */
export const clockBounds = (dateMs: number, sentAtMs: number, receivedAtMs: number) => ({
  least: dateMs - receivedAtMs,
  most: dateMs + SECOND_MS - sentAtMs,
});

/**
 * Each answer bounds the difference between the clocks of server and machine from both sides: its date was written after the
 * request was sent and before the answer arrived. Before the first answer, the clock of the machine or of Redis is used.
 */
export class ServerClock {
  #leastMs = Number.NEGATIVE_INFINITY;
  #mostMs = Number.POSITIVE_INFINITY;

  /** `localOffsetMs`: wall clock minus monotonic clock of this machine. */
  constructor(private readonly localOffsetMs: () => number) {}

  /** `dateMs`: the `Date` header; the other two are times of the monotonic clock. */
  onAnswer(dateMs: number, sentAtMs: number, receivedAtMs: number): void {
    if (receivedAtMs - sentAtMs > SLOWEST_MS) return;
    const { least, most } = clockBounds(dateMs, sentAtMs, receivedAtMs);
    this.#leastMs = Math.max(this.#leastMs, least);
    this.#mostMs = Math.min(this.#mostMs, most);
    // The bounds contradict each other, so one of the clocks was changed: only the last answer counts.
    if (this.#leastMs > this.#mostMs) {
      this.#leastMs = least;
      this.#mostMs = most;
    }
  }

  /** `nowMs`: time of the monotonic clock. */
  at(nowMs: number): ServerTime {
    if (this.#leastMs === Number.NEGATIVE_INFINITY) {
      const local = nowMs + this.localOffsetMs();
      return { fromMs: local, toMs: local };
    }
    return { fromMs: nowMs + this.#leastMs, toMs: nowMs + this.#mostMs };
  }
}
