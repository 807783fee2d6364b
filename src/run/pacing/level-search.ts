/**
 * Searches the lowest level of concurrency that delivers the most objects per second. Latency alone cannot tell a slow host
 * from a full one, but throughput can: a level is not too high while a higher one delivers more. The search doubles the
 * level until the rate stays the same, settles at the best level, and then tries a neighbouring level from time to time,
 * because hosts change. BBR searches its congestion window in the same way.
 */
import type { Measurement } from './measurement.js';

export type LevelReason =
  | 'growth'
  | 'most-objects-per-second'
  | 'trying-more'
  | 'trying-fewer'
  | 'no-faster-with-more'
  | 'slower-with-fewer'
  | 'refused'
  | 'troubled'
  | 'not-the-load';

export interface Step {
  readonly level: number;
  readonly why: LevelReason;
}

/** While growing, the level doubles. A level that is x % higher must raise the rate by `SCALES` times x %. After two that do not, the growth ends. */
const GROWTH = 2;
const SCALES = 0.25;
const FLAT_LEVELS = 2;
/** A level is better than a lower one only if its rate is higher by this factor. */
const BETTER = 1.05;
/** The level of a trial, relative to the present one, and the measurements between a failed trial and the next one. */
const FEWER = 0.75;
const MORE = 1.3;
const MEASUREMENTS_BETWEEN_TRIALS = 6;
/** A trial with fewer objects must keep the share `AS_FAST` of the rate. A trial with x % more must raise the rate by `EARNS` times x %. */
const AS_FAST = 0.93;
const EARNS = 0.4;
/**
 * If objects take longer than without a queue, a proportionally lower level plus a margin (`ROOM`) is as fast. The host seems to queue
 * requests if that level is below the share `QUEUEING` of the present one. A trial never goes below the share `LARGEST_CUT`.
 */
const ROOM = 1.1;
const QUEUEING = 0.8;
const LARGEST_CUT = 0.6;
/** A host that refuses more than twice this share may have too much load. */
const USUAL_REFUSALS = 0.01;
/** It has too much, if fewer objects in flight bring its refusals below this share of the earlier ones. */
const FEWER_REFUSALS = 0.4;
/** A refused level is tried again after this many measurements below it. */
const MEASUREMENTS_BELOW_CEILING = 20;

const NONE: Measurement = { level: 1, perSecond: 0, meanMs: 0, refusedShare: 0, isLocal: false };

export class LevelSearch {
  #mode: 'growing' | 'holding' | 'trying-more' | 'trying-fewer' = 'growing';
  level: number;
  /** The level of the last refusal. */
  #ceiling = Number.POSITIVE_INFINITY;
  #growTo = Number.POSITIVE_INFINITY;
  #flatLevels = 0;
  /** The last measurement with enough growth of the rate. */
  #scaling: Measurement | undefined;
  #best: Measurement | undefined;
  #held = NONE;
  #measurementsHeld = 0;
  #measurementsToHold = MEASUREMENTS_BETWEEN_TRIALS;
  #measurementsBelowCeiling = 0;
  /** The direction of the last trial, if it was a success. The next trial has the same direction. */
  #direction: 'fewer' | 'more' | undefined;
  /** Trials with fewer and with more objects alternate. */
  #isTurnOfFewer = true;
  #isTroubled = false;
  /** The share of refusals at any load, as far as is known. */
  #usualRefusals = USUAL_REFUSALS;
  /** The mean time of an object at a host without a queue, as far as is known. */
  #unhinderedMs = Number.POSITIVE_INFINITY;

  constructor(
    level: number,
    private readonly bounds: { readonly least: number; readonly most: number },
  ) {
    this.level = level;
  }

  /** Why the level is not higher; undefined at the maximum, and while it grows without failures. */
  get heldBy(): 'refused' | 'troubled' | 'no-faster-with-more' | undefined {
    if (this.level >= this.bounds.most) return undefined;
    if (this.#ceiling < Number.POSITIVE_INFINITY) return 'refused';
    if (this.#isTroubled) return 'troubled';
    return this.#mode === 'growing' ? undefined : 'no-faster-with-more';
  }

  /** Objects of the next measurement, as a multiple of the level. A trial needs more of them than growth. */
  get turns(): number {
    return this.#mode === 'growing' ? 1 : 2;
  }

  /** The next step after a measurement; undefined: another measurement at the same level. `growTo`: the highest level that the failures allow. */
  onMeasurement(measurement: Measurement, growTo: number): Step | undefined {
    this.#growTo = growTo;
    if (this.#mode === 'growing') return this.#grow(measurement);
    if (this.#mode === 'trying-fewer') return this.#judgeFewer(measurement);
    if (this.#mode === 'trying-more') return this.#judgeMore(measurement);
    return this.#hold(measurement);
  }

  /** Falls to `level`, because the host refuses requests or the connection fails with `fromLevel` objects in flight. */
  retreat(fromLevel: number, level: number, why: 'refused' | 'troubled'): Step {
    // At the lowest level, more may be tried again.
    if (why === 'refused') this.#ceiling = fromLevel > this.bounds.least ? fromLevel : Infinity;
    this.#isTroubled = why === 'troubled';
    return this.#startGrowing(level, why);
  }

  /** Starts the search again from the level before a retreat that did not reduce the failures. */
  goBack(level: number): Step {
    this.#ceiling = Number.POSITIVE_INFINITY;
    this.#isTroubled = false;
    return this.#startGrowing(level, 'not-the-load');
  }

  #startGrowing(level: number, why: LevelReason): Step {
    this.#mode = 'growing';
    this.#flatLevels = 0;
    this.#scaling = undefined;
    this.#best = undefined;
    return this.#step(level, why);
  }

  #grow(measurement: Measurement): Step | undefined {
    this.#unhinderedMs = Math.min(this.#unhinderedMs, measurement.meanMs);
    const growth = this.#scaling === undefined ? 1 : measurement.level / this.#scaling.level - 1;
    const isFlat =
      this.#scaling !== undefined && measurement.perSecond < this.#scaling.perSecond * (1 + growth * SCALES);
    this.#flatLevels = isFlat ? this.#flatLevels + 1 : 0;
    if (!isFlat) this.#scaling = measurement;
    if (this.#best === undefined || measurement.perSecond > this.#best.perSecond * BETTER)
      this.#best = measurement;
    if (this.#flatLevels >= FLAT_LEVELS || this.level >= this.#highest) {
      this.#startHolding(0);
      return this.#step(this.#best.level, 'most-objects-per-second');
    }
    this.#isTroubled = !this.#mayGrow;
    return this.#mayGrow
      ? this.#step(Math.min(this.level * GROWTH, this.#belowCeiling), 'growth')
      : undefined;
  }

  #hold(measurement: Measurement): Step | undefined {
    this.#held = measurement;
    this.#measurementsHeld += 1;
    if (this.#measurementsHeld <= this.#measurementsToHold && !this.#isRefusing(measurement))
      return undefined;
    this.#measurementsHeld = 0;
    if (this.#isRefusing(measurement)) {
      this.#mode = 'trying-fewer';
      return this.#step(Math.floor(this.level * FEWER), 'trying-fewer');
    }
    return this.#tryFewer(measurement) ?? (this.#mayGrow ? this.#tryMore() : undefined);
  }

  #isRefusing({ refusedShare }: Measurement): boolean {
    return refusedShare > this.#usualRefusals * 2 && this.level > this.bounds.least;
  }

  /** Tries a lower level: alternately with a higher one, and at once when the host seems to queue requests. */
  #tryFewer({ meanMs, isLocal }: Measurement): Step | undefined {
    // If the event loop of this machine was late, the measurement says nothing about the host.
    if (isLocal || this.level <= this.bounds.least) return undefined;
    const enough = (this.level * ROOM * this.#unhinderedMs) / meanMs;
    const isQueueing = enough < this.level * QUEUEING;
    if (this.#direction === undefined) this.#isTurnOfFewer = !this.#isTurnOfFewer;
    const isTurn = this.#direction === undefined ? this.#isTurnOfFewer : this.#direction === 'fewer';
    if (!isQueueing && !isTurn) return undefined;
    this.#mode = 'trying-fewer';
    return this.#step(
      isQueueing ? Math.max(enough, this.level * LARGEST_CUT) : this.level * FEWER,
      'trying-fewer',
    );
  }

  #tryMore(): Step | undefined {
    const to = Math.min(Math.max(this.level + 1, Math.floor(this.level * MORE)), this.#belowCeiling);
    if (to <= this.level) {
      this.#measurementsBelowCeiling += this.#measurementsToHold;
      if (this.#measurementsBelowCeiling < MEASUREMENTS_BELOW_CEILING) return undefined;
      this.#measurementsBelowCeiling = 0;
      this.#ceiling = Number.POSITIVE_INFINITY;
    }
    if (this.level >= this.bounds.most) return undefined;
    this.#mode = 'trying-more';
    return this.#step(Math.max(to, this.level + 1), 'trying-more');
  }

  #judgeFewer(measurement: Measurement): Step | undefined {
    const held = this.#held;
    if (held.refusedShare > this.#usualRefusals * 2) {
      if (measurement.refusedShare < held.refusedShare * FEWER_REFUSALS) {
        this.#ceiling = held.level;
        this.#startHolding(MEASUREMENTS_BETWEEN_TRIALS);
        return undefined;
      }
      this.#usualRefusals = held.refusedShare;
      return this.#revert(held, 'slower-with-fewer');
    }
    if (measurement.perSecond >= held.perSecond * AS_FAST) {
      this.#keep(measurement, 'fewer');
      return undefined;
    }
    // The longer time per object was not a queue: the host has become slower.
    this.#unhinderedMs = held.meanMs;
    return this.#revert(held, 'slower-with-fewer');
  }

  #judgeMore(measurement: Measurement): Step | undefined {
    const held = this.#held;
    const growth = measurement.level / held.level - 1;
    if (measurement.perSecond < held.perSecond * (1 + growth * EARNS))
      return this.#revert(held, 'no-faster-with-more');
    this.#keep(measurement, 'more');
    return undefined;
  }

  #keep(measurement: Measurement, direction: 'fewer' | 'more'): void {
    this.#startHolding(0);
    this.#held = measurement;
    this.#direction = direction;
  }

  #revert({ level }: Measurement, why: LevelReason): Step {
    this.#startHolding(MEASUREMENTS_BETWEEN_TRIALS);
    return this.#step(level, why);
  }

  #startHolding(measurements: number): void {
    this.#mode = 'holding';
    this.#measurementsHeld = 0;
    this.#measurementsToHold = measurements;
    this.#direction = undefined;
  }

  get #mayGrow(): boolean {
    return this.#growTo > this.level;
  }

  get #highest(): number {
    return Math.min(this.bounds.most, this.#ceiling - 1);
  }

  /** At most half of the way to the refused level, and at most the highest allowed level. */
  get #belowCeiling(): number {
    return Math.min(this.#highest, this.#growTo, Math.ceil((this.level + this.#ceiling) / 2));
  }

  #step(level: number, why: LevelReason): Step {
    const { least, most } = this.bounds;
    this.level = Math.round(Math.min(most, Math.max(least, level)));
    return { level: this.level, why };
  }
}
