import { describe, expect, it } from 'vitest';
import { seriesTable } from '../../../src/lake/catalogue/series-table.js';

const ROW = 'BTCUSDT,96.77 %,4.17 %,720,744,rows,2024-01-01 00:00,2024-01-31 23:00,31,2,3,4'.split(',');
const headOf = (width?: number): string[] => (seriesTable([ROW], width)[0] ?? '').split(/ +/);

describe('the table of series', () => {
  it('has all columns in a pipe', () => {
    expect(seriesTable([ROW])).toEqual([
      'series   percent  excused  held  expected        first             last              objects  rest  dropped  revised',
      'BTCUSDT  96.77 %   4.17 %   720       744  rows  2024-01-01 00:00  2024-01-31 23:00       31     2        3        4',
    ]);
  });

  it('fits into a terminal of any usual width, and drops first what matters least', () => {
    for (let width = 60; width <= 120; width += 1)
      for (const line of seriesTable([ROW], width)) expect(line.length).toBeLessThanOrEqual(width);
    const all = 'series percent excused held expected first last objects rest dropped revised'.split(' ');
    expect(headOf(98)).toEqual(all.slice(0, 9));
    expect(headOf(80)).toEqual(['series', 'percent', 'excused', 'held', 'expected', 'last']);
    expect(headOf(60)).toEqual(['series', 'percent', 'excused', 'held', 'last']);
    expect(headOf(40)).toEqual(['series', 'percent', 'held', 'last']);
  });
});
