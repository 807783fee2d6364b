// Writes numbers and times like the real archive.

/** @import { Random } from './synthetic-random.js' */

/**
 * A count of 1e-8 as java.math.BigDecimal prints it: -3449 is -0.00003449, -18 is -1.8E-7.
 * @param {number} units
 */
export function scientific(units) {
  const sign = units < 0 ? '-' : '';
  const digits = String(Math.abs(units));
  if (digits.length === 1) return `${sign}${digits}E-8`;
  if (digits.length === 2) return `${sign}${digits[0]}.${digits[1]}E-7`;
  return `${sign}${fixed(Math.abs(units), 8)}`;
}

/** All zero-padded numbers of up to four digits: formatting takes most of the time, so each is formatted once. */
const PADDED = [1, 2, 3, 4].map((width) =>
  Array.from({ length: 10 ** width }, (_, n) => String(n).padStart(width, '0')),
);

/**
 * Random digits.
 * @param {Random} random
 * @param {number} width
 * @returns {string}
 */
export function tailOf(random, width) {
  if (width > 4) return tailOf(random, 4) + tailOf(random, width - 4);
  const pool = PADDED[width - 1] ?? [];
  return pool[Math.floor(random() * pool.length)] ?? '';
}

/**
 * A whole number of 10^-decimals as decimal text.
 * @param {number} units not negative
 * @param {number} decimals
 */
export function fixed(units, decimals) {
  if (decimals === 0) return String(units);
  const scale = 10 ** decimals;
  const tail = units % scale;
  const text = PADDED[decimals - 1]?.[tail] ?? String(tail).padStart(decimals, '0');
  return `${Math.floor(units / scale)}.${text}`;
}

/**
 * `YYYY-MM-DD HH:MM:SS`.
 * @param {number} atMs
 */
export function label(atMs) {
  const text = new Date(atMs).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

/**
 * As {@link fixed}, without trailing zeros: 8362450 is 83624.5 with two decimals.
 * @param {number} units not negative
 * @param {number} decimals
 */
export function trimmed(units, decimals) {
  const text = fixed(units, decimals);
  return decimals === 0 ? text : text.replace(/\.?0+$/, '');
}
