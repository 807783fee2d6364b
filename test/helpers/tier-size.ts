/** How much of a test with many seeds or runs is done: all of it in the long tier, a part in `npm test`. */
const IS_LONG = process.env['CRYPTODL_TEST_SIZE'] === 'long';

export function sized<T>(all: T, usual: T): T {
  return IS_LONG ? all : usual;
}

/** All rows of a table in the long tier, the first so many in `npm test`. */
export function sizedRows<T>(rows: readonly T[], usual: number): readonly T[] {
  return sized(rows, rows.slice(0, usual));
}
