/** The bans of an egress group, as its members know them. */
import type { Clock } from '../../model/clock.js';
import { LONGEST_WAIT_MS } from '../../model/errors.js';

/** Milliseconds between two signs of life of a member. A ban reaches all members within this time. */
export const BEAT_MS = 500;

interface GroupBan {
  /** Bucket and host. */
  readonly place: string;
  /** On the monotonic clock of this machine. */
  readonly until: number;
  readonly why: string;
}

export class GroupBans {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #listeners = new Set<(ban: GroupBan) => void>();
  #bans: readonly GroupBan[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Calls back for each ban that is new or longer. */
  onBan(listener: (ban: GroupBan) => void): void {
    this.#listeners.add(listener);
  }

  /** The bans at this moment. */
  get current(): readonly GroupBan[] {
    const now = this.#clock.monotonic();
    return this.#bans.filter(({ until }) => until > now);
  }

  /** Takes the list of Redis: place, milliseconds that are left, reason, and so on. No ban by a host lasts longer than `LONGEST_WAIT_MS`. */
  learn(flat: readonly unknown[]): void {
    const now = this.#clock.monotonic();
    const known = new Map(this.#bans.map((ban) => [ban.place, ban.until]));
    const bans: GroupBan[] = [];
    for (let at = 0; at + 2 < flat.length; at += 3) {
      const leftMs = Math.min(Number(flat[at + 1]), LONGEST_WAIT_MS);
      if (Number.isFinite(leftMs))
        bans.push({ place: String(flat[at]), until: now + leftMs, why: String(flat[at + 2]) });
    }
    this.#bans = bans;
    // The computed end of a known ban is a little different each time.
    const longer = bans.filter(({ place, until }) => until > (known.get(place) ?? 0) + BEAT_MS);
    for (const ban of longer) for (const listener of this.#listeners) listener(ban);
  }

  /** Removes bans. Returns their places. */
  remove(isRemoved: (place: string) => boolean): string[] {
    const places = this.#bans.map(({ place }) => place).filter(isRemoved);
    this.#bans = this.#bans.filter(({ place }) => !isRemoved(place));
    return places;
  }
}
