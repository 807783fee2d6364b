// Repeatable randomness: Math.random() cannot be seeded.

/** @typedef {() => number} Random uniform in [0, 1) */

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
