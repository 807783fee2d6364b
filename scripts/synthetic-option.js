// Rows of the option market: a volatility index, and hourly summaries of contracts.
import { levelOf } from './synthetic-random.js';
import { fixed, label, scientific, tailOf } from './synthetic-text.js';
import { daysOf } from './synthetic-ticks.js';

/** @import { Random } from './synthetic-random.js' */
/** @import { Job } from './synthetic-rows.js' */

const HOUR_MS = 3600_000;
const DAY_MS = 24 * HOUR_MS;
/** 1970-01-02: contracts expire on Fridays. */
const FIRST_FRIDAY_MS = DAY_MS;
const STRIKES = 13;
const ZERO = '0E-8';
const BLANK = '""';

/** @param {Job} job */
export function bvolRows(job) {
  const { symbol } = job.spec;
  const base = symbol.replace(/USDT$/, '');
  return daysOf(job).flatMap(({ micros, random }) => {
    let value = 400_000 + Math.floor(random() * 200_000);
    return micros.map((at) => {
      value += Math.floor((random() - 0.5) * 100);
      // On whole seconds, or a little later.
      const ms = Math.floor(at / 1e6) * 1000 + Math.floor(random() * 3);
      return `${ms},${symbol},${base},USDT,${fixed(value, 4)}\n`;
    });
  });
}

/**
 * Hour by hour, the same contracts in each; at most as many contracts as the rows of an hour.
 * @param {Job} job
 */
export function eohRows(job) {
  return daysOf(job, 240).flatMap(({ dayMs, count, random }) => {
    const date = label(dayMs).slice(0, 10);
    const level = levelOf(job.spec, dayMs) / 100;
    let before = -1;
    let contract = 0;
    return Array.from({ length: count }, (_, i) => {
      const hour = Math.floor((i * 24) / count);
      contract = hour === before ? contract + 1 : 0;
      before = hour;
      const { expiry, strike, type } = contractOf(contract, dayMs, level);
      const base = job.spec.symbol.replace(/USDT$/, '');
      const name = `${base}-${expiry}-${strike}-${type},${job.spec.symbol},${type},${expiry}-${strike}`;
      return `${date},${String(hour).padStart(2, '0')},${name},${valuesOf(level, type, random)}\n`;
    });
  });
}

/**
 * Calls and puts by strike, then by expiry.
 * @param {number} index
 * @param {number} dayMs
 * @param {number} level of the underlying
 */
function contractOf(index, dayMs, level) {
  const step = 10 ** Math.floor(Math.log10(level * 0.05));
  const grid = Math.max(1, step);
  const strike = (Math.round(level / grid) + (Math.floor(index / 2) % STRIKES) - 6) * grid;
  const weeks = Math.floor((dayMs - FIRST_FRIDAY_MS) / (7 * DAY_MS)) + 1 + Math.floor(index / 2 / STRIKES);
  const expiry = label(FIRST_FRIDAY_MS + weeks * 7 * DAY_MS);
  const type = index % 2 === 0 ? 'C' : 'P';
  return { expiry: expiry.slice(2, 10).replaceAll('-', ''), strike, type };
}

/**
 * The columns from open to openinterest_usdt.
 * @param {number} level
 * @param {string} type
 * @param {Random} random
 */
function valuesOf(level, type, random) {
  const mark = Math.max(2, Math.floor(random() ** 2 * level * 10));
  const price = (/** @type {number} */ factor) => `${fixed(Math.max(1, Math.floor(mark * factor)), 2)}000000`;
  const amount = () => `${Math.floor(random() * 30)}.${tailOf(random, 2)}000000`;
  // Greeks are often tiny; tiny numbers have exponents.
  const greek = (/** @type {number} */ sign) => scientific(sign * Math.floor(random() ** 6 * 1e8));
  const traded = random() < 0.8;
  const volume = traded && random() < 0.6 ? Math.floor(random() * 3000) + 1 : 0;
  const quoted = random() < 0.95;
  const interest = random();
  return [
    ...[1, 1.1, 0.9, 1.05].map((factor) => (traded ? price(factor) : ZERO)),
    volume === 0 ? ZERO : `${fixed(volume, 2)}000000`,
    volume === 0 ? ZERO : fixed(volume * mark * 1e4, 8),
    ...(quoted ? [price(0.95), price(1.05), amount(), amount()] : [ZERO, ZERO, ZERO, ZERO]),
    BLANK,
    // -1E-8 stands for none.
    quoted ? `0.${tailOf(random, 8)}` : scientific(-1),
    price(1),
    `0.${tailOf(random, 8)}`,
    greek(type === 'C' ? 1 : -1),
    greek(1),
    greek(1),
    greek(-1),
    ...interestOf(interest, mark),
  ].join(',');
}

/**
 * Contracts and USDT: blank, zero or a number.
 * @param {number} chance uniform in [0, 1)
 * @param {number} mark
 */
function interestOf(chance, mark) {
  if (chance < 0.03) return [BLANK, BLANK];
  if (chance < 0.2) return [ZERO, ZERO];
  const held = Math.floor(chance * 10_000);
  return [`${fixed(held, 2)}000000`, fixed(held * mark * 1e4 + 1, 8)];
}
