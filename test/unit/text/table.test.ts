import { describe, expect, it } from 'vitest';
import { table } from '../../../src/text/table.js';
import { fitted } from '../../../src/text/wrap.js';

const COLUMNS = [{ title: 'name' }, { title: 'rows', isNumber: true }, { title: 'note' }];
const ROWS = [
  ['BTCUSDT', '12', 'the archive has all of them'],
  ['币安', '1,234', ''],
];

describe('a table', () => {
  it('has one line for each row in a pipe', () => {
    expect(table(COLUMNS, ROWS).lines).toEqual([
      'name      rows  note',
      'BTCUSDT     12  the archive has all of them',
      '币安     1,234',
    ]);
  });

  it('breaks the widest text between words', () => {
    expect(table(COLUMNS, ROWS, { width: 32 }).lines).toEqual([
      'name      rows  note',
      'BTCUSDT     12  the archive has',
      '                all of them',
      '币安     1,234',
    ]);
  });

  it('writes the cells one after another where the columns do not fit', () => {
    expect(table(COLUMNS, ROWS.slice(0, 1), { width: 20 }).lines.slice(1)).toEqual([
      'BTCUSDT  12  the',
      '  archive has all of',
      '  them',
    ]);
  });
});

describe('a line of a terminal', () => {
  it.each([
    [
      '  held       2 objects, of which one is unchanged',
      38,
      ['  held       2 objects, of which one', '             is unchanged'],
    ],
    [
      'next  cryptodl retry data/x.jsonl --out data',
      32,
      ['next  cryptodl retry \\', '      data/x.jsonl --out data'],
    ],
    ["cryptodl sql 'SELECT 1' --out 'a b'", 27, ["cryptodl sql 'SELECT 1' \\", "  --out 'a b'"]],
    ['warning: the archive does not answer', 30, ['warning: the archive does', '  not answer']],
    ['a\tb and more than the terminal has', 10, ['a\tb and more than the terminal has']],
  ])('%j is broken between words', (line, width, lines) => {
    expect(fitted(line, width)).toEqual(lines);
  });
});
