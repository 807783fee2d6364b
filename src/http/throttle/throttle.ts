/** The permits of all requests of a run: one bucket per limit of a server. */
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import { bucketOfPlace, banKey } from './bans.js';
import { limitedBuckets } from './exchange-hosts.js';
import type { FetchRequest, Layer } from '../../model/fetch.js';
import type { Budget } from './window-count.js';
import type { LongestWait } from './priority-queue.js';
import type { LimiterTally } from './quota-bucket.js';
import type { ServerBucket, ThrottleSetup } from './server-buckets.js';
import { countsOf, sharedBuckets, sharedBucket } from './server-buckets.js';

export class Throttle {
  readonly #buckets: ReadonlyMap<string, ServerBucket>;
  /** Waits and refusals of this run; the buckets may be shared with others. */
  readonly #tallies = new Map<string, LimiterTally>();
  #lastDate = { header: '', time: Number.NaN };

  constructor(
    private readonly setup: ThrottleSetup,
    countOf = countsOf(setup),
  ) {
    const { clock, options, hosts, group } = setup;
    const shared = sharedBuckets(setup);
    const waits = { clock, maxWaitMs: options.maxWaitMs };
    this.#buckets = new Map(
      Object.entries(limitedBuckets(hosts, options)).map(([name, quota]) => [
        name,
        sharedBucket(quota, { ...waits, name }, countOf, shared),
      ]),
    );
    group?.onBan(({ place, untilMs }) => this.pause(bucketOfPlace(place), untilMs - clock.monotonic()));
  }

  /**
   * Waits for a permit, their milliseconds, and refusals by servers (429, 418): of all buckets, and of each bucket that has some. `isChosen`:
   * the waits were mostly for a limit that the user set, or the user set the limit of the bucket.
   */
  get figures() {
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
      ...(this.setup.group && { group: this.setup.group.state }),
    };
  }

  /** The buckets that this run has used, at this moment. `window`: undefined for a rate. */
  get states() {
    const { clock, group } = this.setup;
    const now = clock.monotonic();
    return [...this.#tallies.keys()].map((name) => {
      const { bucket, window } = this.#of(name);
      return {
        name,
        ...bucket.state,
        window: window?.state(now),
        ...(window && group && { group: group.state }),
      };
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
    const { clock, bans, hosts, via } = this.setup;
    const { bucket, window, time } = this.#of(request.bucket);
    const { weight = 1, priority = 'normal' } = request;
    const banMs = await bans.leftMs(banKey(request.bucket, request.url, via));
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
    const sentAtMs = clock.monotonic();
    try {
      const response = await next(request, context);
      bucket.onTaken(sentAtMs);
      const now = clock.monotonic();
      const date = this.#timeOf(response.headers['date']);
      if (!Number.isNaN(date)) time.onAnswer(date, sentAtMs, now);
      window?.onUsed(hosts.usedPermits(response.headers, window.budget.windowMs), date, now);
      return response;
    } catch (error) {
      if (error instanceof CryptodlError) this.#onError(request, error, sentAtMs);
      throw error;
    }
  };

  /** Epoch milliseconds of a `Date` header; NaN without one. Answers of the same second have the same header. */
  #timeOf(header = ''): number {
    if (header !== this.#lastDate.header) this.#lastDate = { header, time: Date.parse(header) };
    return this.#lastDate.time;
  }

  #onError(request: FetchRequest, error: CryptodlError, sentAtMs: number): void {
    if (error.code !== 'rate-limited' && error.code !== 'banned') return;
    const { retryAfterMs } = error;
    // First all buckets of the family are paused. Only then an error for a too long pause is thrown.
    const tooLong = this.#refusedWith(request.bucket, error.code).flatMap((name) => {
      if (retryAfterMs !== undefined) this.#recordBan(name, request.url, error.message, retryAfterMs);
      try {
        const longestWaitMs = this.#longestWaitOf(name);
        this.#of(name).bucket.onRefused(sentAtMs, retryAfterMs, this.#tallyOf(name), longestWaitMs);
        return [];
      } catch (longer) {
        return [longer as Error];
      }
    });
    if (tooLong[0] !== undefined) throw tooLong[0];
  }

  #recordBan(bucket: string, url: string, why: string, delayMs: number): void {
    const { clock, bans, hosts, via } = this.setup;
    const untilMs = clock.now() + delayMs;
    for (const kin of hosts.bannedWith(url)) bans.record(banKey(bucket, kin, via), { untilMs, why });
  }

  /** Undefined for the buckets of REST, because a wait for its limits is usual. */
  #longestWaitOf(bucket: string): LongestWait {
    return ['archive', 'listing'].includes(bucket) ? this.setup.failover?.longestWaitMs : undefined;
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
