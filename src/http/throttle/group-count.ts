/** The count of a bucket that all programs of an egress group share. */
import type { Clock } from '../../model/clock.js';
import type { EgressGroup, GroupWindow } from './group.js';
import type { Budget, WindowCount } from './meter.js';

/** Redis answers earlier, or the group is lost; both wake the bucket. Milliseconds. */
const ANSWER_MS = 1000;
/** After a refusal, the bucket asks again when permits of others may have been given back. Milliseconds. */
const FULL_MS = 900;
/** Permits are kept for others only for a short time. Milliseconds. */
const SOON_MS = 100;

/**
 * Redis decides about each request. A request asks for exactly its own weight and waits for the answer; the answer wakes the bucket,
 * and a permit that no request of the bucket then wants is given back at once. So no permit lies unused in a program.
 */
export class GroupCount implements WindowCount {
  readonly #group: EgressGroup;
  readonly #bucket: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #listeners = new Set<() => void>();
  #window: GroupWindow;
  /** Permits of the window that this program has used, and those that Redis gave it and that it has not used. */
  #own = 0;
  #held = 0;
  /** The count of the group, `held` included. */
  #known = 0;
  /** The count of the venue. */
  #ofVenue = 0;
  #isAsking = false;
  #refused: { readonly until: number; readonly weight: number; readonly isFull: boolean } | undefined;

  constructor(group: EgressGroup, bucket: string, clock: Pick<Clock, 'monotonic'>) {
    this.#group = group;
    this.#bucket = bucket;
    this.#clock = clock;
    this.#window = { bucket, windowMs: 0, window: Number.NaN };
    group.watch(
      bucket,
      () => ({ ...this.#window, own: this.#own + this.#held, used: this.#known }),
      () => {
        this.#wake();
      },
    );
  }

  get isAsking(): boolean {
    return this.#isAsking;
  }

  get offsetMs(): number | undefined {
    return this.#group.offsetMs;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  used(window: number): number {
    if (window !== this.#window.window) return 0;
    return Math.max(this.#own, this.#known - this.#held, this.#group.isJoined ? 0 : this.#ofVenue);
  }

  holds(window: number, weight: number): boolean {
    return window === this.#window.window && this.#held >= weight;
  }

  take(window: number, weight: number, { permits, windowMs }: Budget, at: number): number {
    this.#enter(window, windowMs);
    const now = this.#clock.monotonic();
    const { aloneFrom } = this.#group;
    if (aloneFrom !== undefined) return this.#takeAlone(weight, permits, now - at >= aloneFrom);
    if (this.#held >= weight) {
      this.#held -= weight;
      this.#own += weight;
      return 0;
    }
    if (this.#isAsking || !this.#group.isJoined) return ANSWER_MS;
    const refused = this.#refused;
    if (refused !== undefined && now < refused.until && weight >= refused.weight)
      return refused.isFull ? Infinity : refused.until - now;
    void this.#ask(this.#window, weight, permits);
    return ANSWER_MS;
  }

  raise(window: number, used: number): void {
    if (window !== this.#window.window) return;
    this.#ofVenue = Math.max(this.#ofVenue, used);
    if (used <= this.#known) return;
    this.#known = used;
    this.#group.raise(this.#window, used);
  }

  giveBack(window: number, weight: number): void {
    if (window !== this.#window.window) return;
    this.#own -= weight;
    this.#known -= weight;
    this.#group.giveBack(this.#window, weight);
  }

  /** Without Redis: at most the share of this program, only in windows that began after the others noticed, and never above the count of the venue. */
  #takeAlone(weight: number, permits: number, isNewWindow: boolean): number {
    const share = Math.floor(permits / this.#group.members);
    if (!isNewWindow || this.#own + weight > share || this.#ofVenue + weight > permits) return Infinity;
    this.#own += weight;
    return 0;
  }

  async #ask(window: GroupWindow, weight: number, permits: number): Promise<void> {
    this.#isAsking = true;
    const asked = weight - this.#held;
    try {
      const { result, used } = await this.#group.take(window, asked, permits);
      if (window !== this.#window) {
        if (result === 'taken') this.#group.giveBack(window, asked);
      } else {
        this.#known = Math.max(this.#known, used);
        if (result === 'taken') this.#held += asked;
        else {
          const isFull = result === 'full';
          this.#refused = { until: this.#clock.monotonic() + (isFull ? FULL_MS : SOON_MS), weight, isFull };
        }
      }
    } catch {
      // The group is lost, and has told it.
    } finally {
      this.#isAsking = false;
    }
    this.#wake();
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
    if (this.#isAsking || this.#held === 0) return;
    this.#group.giveBack(this.#window, this.#held);
    this.#known -= this.#held;
    this.#held = 0;
  }

  #enter(window: number, windowMs: number): void {
    if (window === this.#window.window && windowMs === this.#window.windowMs) return;
    this.#window = { bucket: this.#bucket, windowMs, window };
    this.#own = 0;
    this.#held = 0;
    this.#known = 0;
    this.#ofVenue = 0;
    this.#refused = undefined;
  }
}
