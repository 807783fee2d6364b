/** What the exact checker takes for a cell of each type, at its edges. */
import { expect, it } from 'vitest';
import type { ColumnSpec } from '../../../src/exchange/facts.js';
import { findFirstError, LONGEST_LINE } from '../../../src/convert/check-rows.js';

/** Why a line is wrong; undefined when it is right. */
async function wrongIn(columns: readonly ColumnSpec[], line: string): Promise<string | undefined> {
  async function* lines(): AsyncGenerator<string> {
    yield await Promise.resolve(line);
  }
  const wrong = await findFirstError(columns, { name: 'x.csv', symbol: 'BTCUSDT', headerLines: 0 }, lines());
  return wrong?.message.replace('x.csv line 1: ', '');
}

function column(type: ColumnSpec['type'], nullable = false): ColumnSpec {
  return { name: type, type, nullable, restOnly: false, doc: '' };
}

const RIGHT: Readonly<Record<Exclude<ColumnSpec['type'], 'symbol'>, readonly string[]>> = {
  time: ['1000000000000', '9999999999999', '1000000000000000', '9999999999999998', '"1704067200000"'],
  datetime: ['2024-01-15', '2024-01-15 00:00:00', '2024-01-15T23:59:59', '2024-02-29'],
  date: ['2024-01-15', ' 2024-02-29 ', '"2024-01-15"'],
  hour: ['0', '23', '7.0'],
  flag: ['true', 'FALSE'],
  text: ['BUY', '1e-400', '2024-01-15', '"BUY"', '币安'],
  integer: ['9007199254740991', '-9007199254740991', '0', '0e-400'],
  number: ['1.5', '-6E-8', '0e-400', '1e308'],
};

const WRONG: Readonly<Record<Exclude<ColumnSpec['type'], 'symbol'>, readonly string[]>> = {
  time: [
    '999999999999',
    '10000000000000',
    '999999999999999',
    '10000000000000000',
    '1.7e12',
    '-1704067200000',
  ],
  datetime: ['2024-02-30', '2024-01-15 24:00:00', '2024-01-15 00:60:00', '2024-01-15 00:00:60', '2024-01'],
  date: ['2024-01-15 00:00:00', '2024-01-15T00:00:00', '2024-02-30', '20240115', '2024'],
  hour: ['-1', '24', '1.5', 'x', '00:00'],
  flag: ['1', 'yes'],
  text: ['', '""', '"', '"a"b"', '"a""b"', 'a\tb', 'a\u007fb', 'a\uFFFDb'],
  integer: ['9007199254740992', '-9007199254740992', '1.5'],
  number: ['1e309', 'NaN', 'x', '"', '"1"2"'],
};

const rows = (
  cells: Readonly<Record<string, readonly string[]>>,
): (readonly [ColumnSpec['type'], string])[] =>
  Object.entries(cells).flatMap(([type, texts]) =>
    texts.map((text) => [type as ColumnSpec['type'], text] as const),
  );

it.each(rows(RIGHT))('a cell of type %s may be %j', async (type, cell) => {
  expect(await wrongIn([column(type), column('flag')], `${cell},true`)).toBeUndefined();
});

it.each(rows(WRONG))('a cell of type %s may not be %j', async (type, cell) => {
  expect(await wrongIn([column(type), column('flag')], `${cell},true`)).toMatch(
    new RegExp(`^${type} is ".*", not `),
  );
});

it.each(['number', 'integer'] as const)('a cell of type %s may not be rounded to 0', async (type) => {
  const wrong = `${type} is "1e-400", which a double rounds to 0`;
  expect(await wrongIn([column(type)], '1e-400')).toBe(wrong);
});

it('only a cell that may be empty is empty, also between quotes, but a single quote is none', async () => {
  const columns = [column('number', true), column('flag')];
  expect(await wrongIn(columns, ',true')).toBeUndefined();
  expect(await wrongIn(columns, '"",true')).toBeUndefined();
  expect(await wrongIn(columns, '",true')).toBe('number is "\\"", not a finite number');
});

it('a blank line is wrong also where the only column may be empty', async () => {
  expect(await wrongIn([column('number', true)], '')).toBe('the line is blank');
});

it('a line may be as long as DuckDB reads it', async () => {
  const longest = 'x'.repeat(LONGEST_LINE);
  expect(await wrongIn([column('text')], longest)).toBeUndefined();
  const why = `the line is longer than ${LONGEST_LINE} characters`;
  expect(await wrongIn([column('text')], `${longest}x`)).toBe(why);
});
