// Repeatable randomness: Math.random() cannot be seeded.

/** @typedef {() => number} Random uniform in [0, 1) */

const DAY_MS = 24 * 3600_000;

/**
 * FNV-1a, 32 bits.
 * @param {string} text
 */
export function hash(text) {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/**
 * mulberry32.
 * @param {string} seed
 * @returns {Random}
 */
export function randomFrom(seed) {
  let state = hash(seed);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Price of a symbol in hundredths, moving slowly from period to period.
 * @param {{ symbol: string, seed?: number }} spec
 * @param {number} atMs
 */
export function levelOf({ symbol, seed = 1 }, atMs) {
  const own = hash(`${seed}/${symbol}`);
  const base = symbol.startsWith('BTC') ? 6_000_000 : 2000 + (own % 400_000);
  return Math.round(base * (1 + 0.3 * Math.sin(atMs / DAY_MS / 50 + own)));
}
