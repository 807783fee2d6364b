/**
 * How many seeds and runs of a test are done: a part in `npm test`, all of them in the long tier. Tables run completely in every tier.
 * `full`: with CRYPTODL_TEST_SIZE=full, for tests that have still more.
 */
const SIZE = process.env['CRYPTODL_TEST_SIZE'];

export function sized<T>(all: T, usual: T, full = all): T {
  if (SIZE === 'full') return full;
  return SIZE === 'long' ? all : usual;
}
