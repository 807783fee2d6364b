/** The number of objects in flight: fixed by the user, or the lowest level at which the host delivers the most objects per second. */
import type { LoadSign } from '../../http/load-sign.js';
import { withinOpenFiles } from '../../files/machine.js';
import type { ConcurrencyOption } from '../../plan/options/network-flags.js';
import { LevelSearch, type LevelReason, type Step } from './level-search.js';
import { Throughput, type Measurement } from './measurement.js';
import { Failures, RESULTS_AFTER_RETREAT } from './failure-share.js';

export function allowedInFlight(choice: ConcurrencyOption): number {
  return choice.kind === 'fixed' ? choice.limit : choice.max;
}

/** The highest number of objects in flight: fewer than allowed where the process may open few files. */
export const mostInFlight = (choice: ConcurrencyOption): number => withinOpenFiles(allowedInFlight(choice));

/** A change of the level. Events have these names. */
export interface LevelChange {
  readonly from: number;
  readonly to: number;
  readonly why: LevelReason;
}

const LEAST = 2;
/** Too many failures reduce the level to this share. */
const RETREAT = 0.7;
/** After a retreat, results of this share of the earlier requests are enough: the last ones may hang. */
const NEARLY_ALL = 0.9;
/** An object is two requests: a zip and its sidecar. */
const ANSWERS_PER_OBJECT = 2;

type FailureKind = 'refused' | 'troubled';

export class Concurrency {
  /** How often the level fell because of failures. */
  retreats = 0;
  onChange: (places: number) => void = () => undefined;
  onLevel: (change: LevelChange) => void = () => undefined;
  readonly #isFixed: boolean;
  readonly #most: number;
  readonly #search: LevelSearch;
  readonly #failures: Readonly<Record<FailureKind, Failures>> = {
    refused: new Failures({ least: 3, mayBeFull: true }),
    troubled: new Failures({ least: RESULTS_AFTER_RETREAT, mayBeFull: false }),
  };
  /** Why the level is falling now. */
  #retreatWhy: FailureKind | undefined;
  /** The limit of objects in flight. On the way to a higher level it rises by one with each object that arrives. */
  limit: number;
  #meter: Throughput;
  #flying = 0;
  /** This many earlier requests must end before the lower level is in force. */
  #toEnd = 0;
  /** Requests that began before this moment say nothing about the present level. */
  #since = Number.NEGATIVE_INFINITY;
  #waiting = 0;
  #hasObject = false;

  /** `start`: the first level of `auto`. */
  constructor({ choice, start }: { readonly choice: ConcurrencyOption; readonly start: number }) {
    this.#isFixed = choice.kind === 'fixed';
    this.#most = mostInFlight(choice);
    const least = Math.min(LEAST, this.#most);
    const level = this.#isFixed ? this.#most : Math.min(start, this.#most);
    this.#search = new LevelSearch(level, { least, most: this.#most });
    this.limit = level;
    this.#meter = new Throughput(level, this.#search.turns, 0);
  }

  /** A level below the maximum, and why it does not grow. Undefined at the maximum, before the first object, and while the level grows without failures. */
  get settled() {
    const { heldBy: why } = this.#search;
    // No level is known before the first object has arrived.
    if (!this.#hasObject || why === undefined) return undefined;
    return { level: this.limit, most: this.#most, why };
  }

  /** Places in the queue. An object that waits for its retry leaves its place to another, unless the user fixed the concurrency. */
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
    // A measurement counts each object that arrives, but only the failures of the present level.
    if (sign.sentAtMs >= this.#since && this.#isFailing(sign)) return;
    if (sign.result !== 'good' || !sign.isObject) return;
    this.#hasObject = true;
    if (this.limit < this.#search.level) this.#set(this.limit + 1);
    const measurement = this.#meter.add(sign.sentAtMs, sign.endedAtMs, sign.isLate);
    if (measurement !== undefined) this.#onMeasurement(measurement, sign.endedAtMs);
  }

  /** Counts damaged content, which is detected only after its attempt has ended. */
  onBadContent(now: number): void {
    if (this.#isFixed) return;
    this.#addResult('troubled', true, now);
  }

  /** Whether a lower level is not in force yet. First the surplus requests must end; after failures, nearly all earlier requests. */
  #isSettling({ begunAtMs, endedAtMs, result }: LoadSign): boolean {
    if (this.#toEnd === 0) return false;
    const isEarlier = begunAtMs <= this.#since;
    const why = this.#retreatWhy;
    if (isEarlier && why !== undefined && result !== 'other') this.#failures[why].addEarlier(result === why);
    // A refusal makes no room, because its object is requested again.
    if (isEarlier || (why === undefined && result === 'good')) this.#toEnd -= 1;
    if (this.#toEnd > 0) return true;
    this.#since = endedAtMs;
    this.#meter = new Throughput(this.limit, this.#search.turns, 0, endedAtMs);
    this.#retreatWhy = undefined;
    const left = why && this.#failures[why].left;
    if (why !== undefined && left !== undefined && left.served < this.limit)
      this.#take(this.#search.retreat(left.level, left.served, why), this.limit, endedAtMs);
    return false;
  }

  #isFailing({ result, endedAtMs }: LoadSign): boolean {
    this.#meter.count(result === 'refused');
    const isRefused = this.#addResult('refused', result === 'refused', endedAtMs);
    return this.#addResult('troubled', result === 'troubled', endedAtMs) || isRefused;
  }

  /** Retreats if too many failed. Goes back to an earlier level after an outage, or if a retreat did not help. Returns whether it did one of them. */
  #addResult(why: FailureKind, isBad: boolean, now: number): boolean {
    const failures = this.#failures[why];
    const verdict = failures.add(isBad) ?? failures.judge();
    if (verdict === undefined && !failures.isMuch(this.#flying)) return false;
    if (verdict === undefined || verdict === 'again') this.#retreat(why, now);
    else {
      this.#forgetResults();
      this.#take(this.#search.goBack(verdict.backTo), this.limit, now);
    }
    return true;
  }

  #retreat(why: FailureKind, now: number): void {
    this.retreats += 1;
    this.#failures[why].onRetreat(this.limit);
    this.#forgetResults();
    const fromLevel = this.limit;
    this.#take(this.#search.retreat(fromLevel, Math.floor(fromLevel * RETREAT), why), fromLevel, now);
    this.#since = now;
    this.#retreatWhy = why;
    this.#toEnd = Math.ceil(this.#flying * NEARLY_ALL);
  }

  #onMeasurement(measurement: Measurement, now: number): void {
    const { refused, troubled } = this.#failures;
    this.#take(
      this.#search.onMeasurement(measurement, Math.min(refused.growTo, troubled.growTo)),
      measurement.level,
      now,
    );
  }

  #forgetResults(): void {
    this.#failures.refused.recent.clear();
    this.#failures.troubled.recent.clear();
  }

  #take(step: Step | undefined, fromLevel: number, now: number): void {
    const toLevel = step?.level ?? fromLevel;
    // The objects of the lower level are still in flight.
    this.#meter = new Throughput(toLevel, this.#search.turns, toLevel > fromLevel ? fromLevel : 0, now);
    if (step === undefined || toLevel === fromLevel) return;
    if (toLevel < fromLevel) {
      this.#since = now;
      this.#toEnd = this.#flying - Math.ceil((this.#flying * toLevel) / fromLevel);
      this.#set(toLevel);
    }
    this.onLevel({ from: fromLevel, to: toLevel, why: step.why });
  }

  #set(limit: number): void {
    this.limit = limit;
    this.onChange(this.places);
  }
}
