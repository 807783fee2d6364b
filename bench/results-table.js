/** The runs of all contenders as one table of text. */

/** @import { Contender } from './contenders.js' */
/** @import { Measured } from './measure.js' */
/** @import { Verdict } from './check.js' */

/**
 * @typedef {Omit<Measured, 'stdout' | 'stderr'> & Verdict & {
 *   requests: number | undefined, objectRequests?: number | undefined, faults?: number }} Run
 */
/** @typedef {{ contender: Contender, runs: readonly Run[] }} Result */

/**
 * @param {readonly Result[]} results
 * @param {string} yardstick id of the contender that the others are divided by
 */
export function resultsTable(results, yardstick) {
  const head = ['contender', 'wall s', 'min', 'max', 'CPU s', 'peak MB', 'requests', 'right/wrong/missing'];
  const measured = results.filter(({ runs }) => runs.length > 0);
  const base = measured.find(({ contender }) => contender.id === yardstick);
  const rows = measured.map((result) => rowOf(result, base));
  return aligned([[...head, `wall / (${yardstick})`], ...rows]);
}

/**
 * @param {Result} result
 * @param {Result | undefined} base
 */
function rowOf({ contender, runs }, base) {
  const walls = runs.map((run) => run.wallSeconds);
  const worst = runs.reduce((a, b) => (b.right - b.wrong < a.right - a.wrong ? b : a));
  const ratio = base === undefined ? undefined : median(walls) / medianWall(base);
  return [
    `(${contender.id}) ${contender.name}`,
    median(walls).toFixed(2),
    Math.min(...walls).toFixed(2),
    Math.max(...walls).toFixed(2),
    medianOf(runs, (run) => run.cpuSeconds)?.toFixed(2) ?? '-',
    medianOf(runs, (run) => run.peakBytes && run.peakBytes / 1e6)?.toFixed(0) ?? '-',
    medianOf(runs, (run) => run.requests)?.toLocaleString('en-US') ?? '-',
    `${worst.right}/${worst.wrong}/${worst.missing}`,
    ratio?.toFixed(2) ?? '-',
  ];
}

/** @param {Result} result */
function medianWall({ runs }) {
  return median(runs.map((run) => run.wallSeconds));
}

/**
 * @param {readonly Run[]} runs
 * @param {(run: Run) => number | undefined} pick
 */
export function medianOf(runs, pick) {
  const values = runs.flatMap((run) => pick(run) ?? []);
  return values.length === 0 ? undefined : median(values);
}

/** @param {readonly number[]} values */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}

/** First column to the left, numbers to the right. */
function aligned(/** @type {readonly (readonly string[])[]} */ rows) {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}
