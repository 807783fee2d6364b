/** How many seeds and runs of a test are done: all of them in the long tier, a part in `npm test`. Tables run completely in every tier. */
const IS_LONG = process.env['CRYPTODL_TEST_SIZE'] === 'long';

export function sized<T>(all: T, usual: T): T {
  return IS_LONG ? all : usual;
}
