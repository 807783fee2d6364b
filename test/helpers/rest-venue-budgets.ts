/** What one address may ask of a REST venue, and what becomes of one that does not stop. */
import { DAY_MS } from './rest-venue-types.js';

/** `futures-weight` is one pool for fapi and dapi; the two without headers, `statistics` and `funding`, are shared too. */
export type Bucket = 'futures-weight' | 'spot-weight' | 'statistics' | 'funding';
/** Banned together. */
export type Family = 'futures' | 'spot';

interface Budget {
  readonly family: Family;
  readonly limit: number;
  readonly windowMs: number;
}

const BUDGETS: Readonly<Record<Bucket, Budget>> = {
  'futures-weight': { family: 'futures', limit: 2400, windowMs: 60_000 },
  'spot-weight': { family: 'spot', limit: 6000, windowMs: 60_000 },
  statistics: { family: 'futures', limit: 1000, windowMs: 300_000 },
  funding: { family: 'futures', limit: 500, windowMs: 300_000 },
};

/** Requests after the first 429 of a window that are still forgiven. */
const FORGIVEN = 5;
const FIRST_BAN_MS = 120_000;
const LONGEST_BAN_MS = 3 * DAY_MS;

/** Starts anew at every whole multiple of its length: the exchange's windows are those of the clock. */
interface Usage {
  window: number;
  used: number;
  refused: number;
  most: number;
}

export class Budgets {
  readonly #now: () => number;
  /** All limits times this. */
  factor: number;
  readonly #usages = new Map<Bucket, Usage>();
  readonly #bannedUntil: Record<Family, number> = { futures: 0, spot: 0 };
  readonly #bans: Record<Family, number> = { futures: 0, spot: 0 };

  constructor(now: () => number, factor: number) {
    this.#now = now;
    this.factor = factor;
  }

  limit(bucket: Bucket): number {
    return Math.max(1, Math.floor(BUDGETS[bucket].limit * this.factor));
  }

  used(bucket: Bucket): number {
    return this.#usage(bucket).used;
  }

  /** In any one window. */
  most(bucket: Bucket): number {
    return this.#usage(bucket).most;
  }

  windowMs(bucket: Bucket): number {
    return BUDGETS[bucket].windowMs;
  }

  /** What is refused is counted like everything else. */
  take(bucket: Bucket, weight: number): 'granted' | 'refused' | 'banned' {
    const usage = this.#usage(bucket);
    usage.used += weight;
    usage.most = Math.max(usage.most, usage.used);
    if (usage.used <= this.limit(bucket)) return 'granted';
    usage.refused += 1;
    if (usage.refused <= 1 + FORGIVEN) return 'refused';
    const { family } = BUDGETS[bucket];
    this.ban(family, Math.min(LONGEST_BAN_MS, FIRST_BAN_MS * 2 ** this.#bans[family]));
    this.#bans[family] += 1;
    return 'banned';
  }

  /** From now on, whatever was said before. */
  ban(family: Family, ms: number): void {
    this.#bannedUntil[family] = this.#now() + ms;
  }

  /** Undefined when not banned now. */
  bannedUntil(family: Family): number | undefined {
    const until = this.#bannedUntil[family];
    return this.#now() < until ? until : undefined;
  }

  #usage(bucket: Bucket): Usage {
    const window = Math.floor(this.#now() / BUDGETS[bucket].windowMs);
    const usage = this.#usages.get(bucket) ?? { window, used: 0, refused: 0, most: 0 };
    if (usage.window !== window) Object.assign(usage, { window, used: 0, refused: 0 });
    this.#usages.set(bucket, usage);
    return usage;
  }
}
