/** How many objects are in flight: fixed, or the level at which the host delivers most (mechanisms Z6, K5). */
import { LevelSearch } from './level-search.js';
import type { LevelReason, Step } from './level-search.js';
import { RecentShare } from './recent-share.js';
import { RoundMeter } from './round.js';

export type ConcurrencyChoice =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

/** What an attempt on the wire says about the load. */
export interface LoadSign {
  /** On the monotonic clock. */
  readonly sentAt: number;
  readonly endedAt: number;
  /**
   * `refused`: the host said that it is too much, or did not take the connection. `troubled`: the line or the content
   * was bad, which may have nothing to do with the load. `other`: it says nothing about the load.
   */
  readonly result: 'good' | 'refused' | 'troubled' | 'other';
  /** Its answer is an object of the run, not a sidecar. */
  readonly isObject: boolean;
  /** This process comes late to its own work. */
  readonly isLate: boolean;
}

/** Where the level is, below the most that is allowed, and what keeps it there. */
export interface Settled {
  readonly level: number;
  readonly most: number;
  readonly why: 'refused' | 'troubled' | 'no-faster-with-more';
}

export interface ConcurrencyOptions {
  readonly choice: ConcurrencyChoice;
  /** Where `auto` begins. */
  readonly start: number;
}

/** Objects in flight before and after, and the reason of the change. */
export interface LevelChange {
  readonly from: number;
  readonly to: number;
  readonly why: LevelReason;
}

const LEAST = 4;
const RETREAT = 0.7;
/** A host refuses or breaks off as many on a bad day, whatever it is asked. */
const USUAL_SHARE = 0.1;
/** Results at the lower level that tell whether its share is lower too. */
const RESULTS_AFTER_RETREAT = 60;
/** A lower level that fails this part of the share above, or more, did not fail because of the load. */
const SAME_SHARE = 0.6;
/** A zip and its sidecar. */
const ANSWERS_PER_OBJECT = 2;

/** The share of failures where the last retreat began. */
interface Retreat {
  readonly level: number;
  readonly share: number;
}

/** Failures of one kind: the share of the last results, and the share that has nothing to do with the load. */
class Failures {
  readonly recent = new RecentShare();
  readonly #least: number;
  #usual = USUAL_SHARE;
  #retreat: Retreat | undefined;

  /** `least`: results without which nothing is decided. */
  constructor(least: number) {
    this.#least = least;
  }

  /** A host that answers none is down, whatever it is asked: the level falls once. */
  get isMuch(): boolean {
    const { results, share } = this.recent;
    const mayBeDown = share === 1 && this.#retreat !== undefined;
    return results >= this.#least && !mayBeDown && this.recent.exceeds(this.#usual);
  }

  /** The level to go back to, where fewer in flight failed as often. */
  notTheLoad(level: number): number | undefined {
    const { results, share } = this.recent;
    const before = this.#retreat;
    if (before === undefined || results < RESULTS_AFTER_RETREAT) return undefined;
    this.#retreat = undefined;
    if (share < before.share * SAME_SHARE || level >= before.level) return undefined;
    this.#usual = Math.max(this.#usual, share);
    return before.level;
  }

  /** The level to retreat to. */
  retreatFrom(level: number): number {
    this.#retreat = { level, share: this.recent.share };
    return Math.floor(level * RETREAT);
  }
}

export class Concurrency {
  /** Retreats so far: what the host could not bear. */
  retreats = 0;
  /** Told of every new number of places. */
  onChange: (places: number) => void = () => undefined;
  /** Told of every new level. */
  onLevel: (change: LevelChange) => void = () => undefined;
  readonly #isFixed: boolean;
  readonly #most: number;
  readonly #least: number;
  readonly #search: LevelSearch;
  readonly #refusals = new Failures(3);
  readonly #troubles = new Failures(RESULTS_AFTER_RETREAT);
  #limit: number;
  #meter: RoundMeter;
  /** Requests on the wire. */
  #flying = 0;
  /** So many of those that were sent before the level fell must end before the lower level is in force. */
  #toEnd = 0;
  /** What was sent before says nothing about the level of now. */
  #since = Number.NEGATIVE_INFINITY;
  #waiting = 0;

  constructor({ choice, start }: ConcurrencyOptions) {
    this.#isFixed = choice.kind === 'fixed';
    this.#most = choice.kind === 'fixed' ? choice.limit : choice.max;
    this.#least = Math.min(LEAST, this.#most);
    const level = choice.kind === 'fixed' ? choice.limit : Math.min(start, choice.max);
    this.#search = new LevelSearch(level, { least: this.#least, most: this.#most });
    this.#limit = level;
    this.#meter = new RoundMeter(level, this.#search.turns, 0);
  }

  /** Undefined while nothing keeps the level from growing. */
  get settled(): Settled | undefined {
    const { heldBy: why } = this.#search;
    if (why === undefined || this.limit >= this.#most) return undefined;
    return { level: this.limit, most: this.#most, why };
  }

  /** Objects on the wire at once: on its way to a higher level it rises with each object that arrives. */
  get limit(): number {
    return this.#limit;
  }

  /**
   * Objects that may be under way: those that only wait for a retry to be granted leave their place to others, unless the
   * user fixed how many there are.
   */
  get places(): number {
    if (this.#isFixed) return this.limit;
    return this.limit + Math.min(Math.floor(this.#waiting / ANSWERS_PER_OBJECT), this.#most);
  }

  onWaiting(change: 1 | -1): void {
    this.#waiting += change;
    this.onChange(this.places);
  }

  onBegun(): void {
    this.#flying += 1;
  }

  onEnded(sign: LoadSign): void {
    this.#flying -= 1;
    if (this.#isFixed || this.#isSettling(sign) || sign.result === 'other') return;
    // Rounds count all that arrives; failures are those of the level of now.
    if (sign.sentAt >= this.#since && this.#isFailing(sign)) return;
    if (sign.result !== 'good' || !sign.isObject) return;
    if (this.#limit < this.#search.level) this.#set(this.#limit + 1);
    const round = this.#meter.add(sign.sentAt, sign.endedAt, sign.isLate);
    if (round === undefined) return;
    const mayGrow = this.#troubles.recent.share <= USUAL_SHARE;
    this.#take(this.#search.onRound(round, mayGrow), round.level, sign.endedAt);
  }

  /** Content that was not what was published: known only after its attempt. */
  onBadContent(now: number): void {
    if (this.#isFixed) return;
    this.#troubles.recent.add(true);
    this.#judge('troubled', now);
  }

  /** A lower level is in force when as many requests as are too many have ended. */
  #isSettling({ sentAt, endedAt, result }: LoadSign): boolean {
    if (this.#toEnd === 0) return false;
    // What is refused at once makes no room.
    if (sentAt < this.#since || result === 'good') this.#toEnd -= 1;
    if (this.#toEnd > 0) return true;
    this.#since = endedAt;
    this.#meter = new RoundMeter(this.limit, this.#search.turns, 0, endedAt);
    return false;
  }

  #isFailing({ result, endedAt }: LoadSign): boolean {
    this.#refusals.recent.add(result === 'refused');
    this.#meter.count(result === 'refused');
    this.#troubles.recent.add(result === 'troubled');
    return this.#judge('refused', endedAt) || this.#judge('troubled', endedAt);
  }

  #judge(why: 'refused' | 'troubled', now: number): boolean {
    const failures = why === 'refused' ? this.#refusals : this.#troubles;
    const from = this.limit;
    const back = failures.notTheLoad(from);
    if (back === undefined && !failures.isMuch) return false;
    if (back === undefined) this.retreats += 1;
    const step =
      back === undefined
        ? this.#search.retreat(from, failures.retreatFrom(from), why)
        : this.#search.goBack(back);
    this.#refusals.recent.clear();
    this.#troubles.recent.clear();
    this.#take(step, from, now);
    return true;
  }

  #take(step: Step | undefined, from: number, now: number): void {
    const to = step?.level ?? from;
    // The objects of the lower level are still under way.
    this.#meter = new RoundMeter(to, this.#search.turns, to > from ? from : 0, now);
    if (step === undefined || to === from) return;
    if (to < from) {
      this.#since = now;
      this.#toEnd = this.#flying - Math.ceil((this.#flying * to) / from);
      this.#set(to);
    }
    this.onLevel({ from, to, why: step.why });
  }

  #set(limit: number): void {
    this.#limit = limit;
    this.onChange(this.places);
  }
}
