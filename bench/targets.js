/** The target ratios of a workload, and whether they were met. */
import { medianOf } from './results-table.js';

/** @import { Result } from './results-table.js' */

/**
 * @typedef {object} Target
 * @property {string} text
 * @property {number} most
 * @property {'ram' | 'disk'} [on] the only file system of which it is asked
 * @property {(results: readonly Result[]) => number | undefined} value undefined if a contender that it needs is absent
 */

/** @typedef {{ text: string, most: number, value: number | undefined, isMet: boolean | undefined }} Verdict */

/**
 * @param {readonly Target[]} targets
 * @param {readonly Result[]} results
 * @param {'ram' | 'disk'} on
 * @returns {Verdict[]}
 */
export function judge(targets, results, on) {
  return targets
    .filter((target) => target.on === undefined || target.on === on)
    .map(({ text, most, value }) => {
      const had = value(results);
      return { text, most, value: had, isMet: had === undefined ? undefined : had <= most };
    });
}

/** @param {Verdict} verdict */
export function verdictText({ text, most, value, isMet }) {
  if (value === undefined) return `target  ${text} <= ${shown(most)}: not measured`;
  return `target  ${text} <= ${shown(most)}: ${shown(value)}, ${isMet === true ? 'met' : 'MISSED'}`;
}

/** @param {number} value */
function shown(value) {
  return value >= 1000 ? value.toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

/**
 * @param {string} id
 * @param {string} other
 * @param {number} most
 * @param {'ram' | 'disk'} [on]
 * @returns {Target}
 */
export function wallRatio(id, other, most, on) {
  return {
    ...ratio(`wall (${id}) / (${other})`, id, other, ({ wallSeconds }) => wallSeconds),
    most,
    ...onOf(on),
  };
}

/**
 * @param {string} id
 * @param {string} other
 * @param {number} most
 * @param {'ram' | 'disk'} [on]
 * @returns {Target}
 */
export function cpuRatio(id, other, most, on) {
  return {
    ...ratio(`CPU (${id}) / (${other})`, id, other, ({ cpuSeconds }) => cpuSeconds),
    most,
    ...onOf(on),
  };
}

/**
 * @param {string} id
 * @param {number} most
 * @param {'ram' | 'disk'} [on]
 * @returns {Target}
 */
export function peakBytes(id, most, on) {
  return {
    ...onOf(on),
    text: `peak MB of (${id})`,
    most: most / 1e6,
    value: (results) => {
      const peak = valueOf(results, id, (run) => run.peakBytes);
      return peak === undefined ? undefined : peak / 1e6;
    },
  };
}

/**
 * Requests for objects, in the worst round, over `useful` plus the faults of that round.
 * @param {string} id
 * @param {number} useful
 * @param {number} factor
 * @returns {Target}
 */
export function requestsOver(id, useful, factor) {
  return {
    text: `requests of (${id}) / (${useful} + faults)`,
    most: factor,
    value: worstOf(id, (run) =>
      run.objectRequests === undefined ? undefined : run.objectRequests / (useful + (run.faults ?? 0)),
    ),
  };
}

/**
 * Requests for objects, in the worst round.
 * @param {string} id
 * @param {number} most
 * @returns {Target}
 */
export function objectRequests(id, most) {
  return {
    text: `requests for objects of (${id})`,
    most,
    value: worstOf(id, (run) => run.objectRequests),
  };
}

/**
 * @param {string} id
 * @param {(run: import('./results-table.js').Run) => number | undefined} pick
 * @returns {(results: readonly Result[]) => number | undefined}
 */
function worstOf(id, pick) {
  return (results) => {
    const runs = results.find(({ contender }) => contender.id === id)?.runs ?? [];
    const values = runs.map(pick).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : Math.max(...values);
  };
}

/**
 * @param {string} text
 * @param {string} id
 * @param {string} other
 * @param {(run: import('./results-table.js').Run) => number | undefined} pick
 */
function ratio(text, id, other, pick) {
  return {
    text,
    value: (/** @type {readonly Result[]} */ results) => {
      const [a, b] = [valueOf(results, id, pick), valueOf(results, other, pick)];
      return a === undefined || b === undefined ? undefined : a / b;
    },
  };
}

/**
 * @param {readonly Result[]} results
 * @param {string} id
 * @param {(run: import('./results-table.js').Run) => number | undefined} pick
 */
function valueOf(results, id, pick) {
  return medianOf(results.find(({ contender }) => contender.id === id)?.runs ?? [], pick);
}

/** @param {'ram' | 'disk' | undefined} on */
function onOf(on) {
  return on === undefined ? {} : { on };
}
