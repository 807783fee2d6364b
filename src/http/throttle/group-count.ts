/** The count of a bucket that all programs of an egress group share. */
import { ANSWER_MS } from '../redis/connection.js';
import type { Clock } from '../../model/clock.js';
import type { EgressGroup } from './group.js';
import type { ToldWindow } from './group-script.js';
import type { Budget, WindowCount } from './window-count.js';

/** After a refusal, the bucket asks again when permits of others may have been given back. Milliseconds. */
const FULL_MS = 900;
/** Redis gives no permit for two seconds after it lost data. Milliseconds. */
const SOON_MS = 100;

/**
 * Redis decides about each request. A request asks for exactly its own weight and waits for the answer; the answer wakes the bucket,
 * and a permit that no request of the bucket then wants is given back at once. So no permit lies unused in a program.
 */
export class GroupCount implements WindowCount {
  readonly #listeners = new Set<() => void>();
  #window = { key: '', window: Number.NaN, windowMs: 0 };
  /** The last attempt to take permits in the window. A bucket without requests tells no window that has ended. */
  #triedAt = 0;
  /** Permits that Redis gave this program and that it has not used. */
  #held = 0;
  /** The count of Redis, `held` included, or that of the exchange if it is higher. */
  #known = 0;
  /** Permits that this program took without Redis, and that Redis does not know yet. */
  #alone = 0;
  isAsking = false;
  #refused: { readonly untilMs: number; readonly weight: number; readonly isFull: boolean } | undefined;

  constructor(
    private readonly group: EgressGroup,
    private readonly bucket: string,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    group.watch(this);
  }

  get offsetMs(): number | undefined {
    return this.group.offsetMs;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  used(window: number): number {
    if (window !== this.#window.window) return 0;
    return Math.max(this.#known - this.#held, this.#alone);
  }

  holds(window: number, weight: number): boolean {
    return window === this.#window.window && this.#held >= weight;
  }

  take(window: number, weight: number, { permits, windowMs }: Budget, elapsedMs: number): number {
    this.#enter(window, windowMs);
    const now = this.clock.monotonic();
    const { aloneFromMs } = this.group;
    if (aloneFromMs !== undefined) return this.#takeAlone(weight, permits, now - elapsedMs >= aloneFromMs);
    if (this.#held >= weight) {
      this.#held -= weight;
      return 0;
    }
    if (this.isAsking || !this.group.isJoined) return ANSWER_MS;
    const refused = this.#refused;
    if (refused !== undefined && now < refused.untilMs && weight >= refused.weight)
      return refused.isFull ? Infinity : refused.untilMs - now;
    void this.#ask(weight, permits);
    return ANSWER_MS;
  }

  /** The next call tells the group: other programs get this count with their own answers. */
  raise(window: number, used: number): void {
    if (window === this.#window.window) this.#known = Math.max(this.#known, used);
  }

  giveBack(window: number, weight: number): void {
    if (window !== this.#window.window) return;
    if (!this.group.isJoined) {
      this.#alone = Math.max(0, this.#alone - weight);
      return;
    }
    this.#known -= weight;
    this.group.call({ key: this.#window.key, weight: -weight }).catch(() => undefined);
  }

  tell(): ToldWindow | undefined {
    const { key, windowMs } = this.#window;
    if (this.clock.monotonic() >= this.#triedAt + windowMs) return undefined;
    return { key, windowMs, used: this.#known, alone: this.#alone };
  }

  learn({ key, alone }: ToldWindow, used: number): void {
    if (key !== this.#window.key) return;
    this.#known = Math.max(this.#known, used);
    this.#alone = Math.max(0, this.#alone - alone);
  }

  wake(): void {
    for (const listener of this.#listeners) listener();
    if (this.isAsking || this.#held === 0) return;
    this.giveBack(this.#window.window, this.#held);
    this.#held = 0;
  }

  /** Without Redis: at most the share of this program, only in windows that began after the others noticed, and never above the count of the exchange. */
  #takeAlone(weight: number, permits: number, isNewWindow: boolean): number {
    const share = Math.floor(permits / this.group.size);
    if (!isNewWindow || this.#alone + weight > share || this.#known + weight > permits) return Infinity;
    this.#alone += weight;
    return 0;
  }

  async #ask(weight: number, limit: number): Promise<void> {
    this.isAsking = true;
    const window = this.#window;
    const asked = weight - this.#held;
    try {
      const result = await this.group.call({ key: window.key, weight: asked, limit });
      // Permits of a window that has ended are of no use, also not for others.
      if (window === this.#window) {
        if (result === 'taken') this.#held += asked;
        else {
          const isFull = result === 'full';
          this.#refused = { untilMs: this.clock.monotonic() + (isFull ? FULL_MS : SOON_MS), weight, isFull };
        }
      }
    } catch {
      // The group is lost, and has told it.
    } finally {
      this.isAsking = false;
    }
    this.wake();
  }

  #enter(window: number, windowMs: number): void {
    this.#triedAt = this.clock.monotonic();
    if (window === this.#window.window && windowMs === this.#window.windowMs) return;
    this.#window = { key: `${this.bucket}:${windowMs}:${window}`, window, windowMs };
    this.#held = this.#known = this.#alone = 0;
    this.#refused = undefined;
  }
}
