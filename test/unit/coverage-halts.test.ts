/** Known halts from config/halts.json. */
import { describe, expect, it } from 'vitest';
import { gapsOf } from '../../src/coverage/gaps.js';
import type { SeriesCoverage } from '../../src/coverage/series-coverage.js';
import { parseHalts, readHalts } from '../../src/source/facts.js';

const DAY = 86_400;
const FIRST = 20_000;

function coverage(differences: Partial<SeriesCoverage>): SeriesCoverage {
  const nothing = { absent: [], gaps: [], edges: [], notInRest: [], loose: [], cuts: [] };
  return {
    from: FIRST,
    to: FIRST + 10,
    rowSeconds: 3600,
    dayStartSeconds: 0,
    ...nothing,
    ...differences,
  } as SeriesCoverage;
}

function reasonsOf(series: SeriesCoverage, from: number, to: number): unknown[] {
  const gaps = gapsOf(series, [FIRST * DAY + from, FIRST * DAY + to]);
  return gaps.map((gap) => [(gap.from - FIRST * DAY) / 3600, (gap.to - FIRST * DAY) / 3600, gap.reason]);
}

describe('a known halt', () => {
  it('explains a day of ticks that it cuts, and no other day', () => {
    const [from, to] = [(FIRST * DAY + 7 * 3600) * 1000, (FIRST + 1) * DAY * 1000];
    const series = coverage({ cuts: [{ day: FIRST, at: 'end', from, to }] });
    expect(reasonsOf(series, 7 * 3600, 23 * 3600)).toEqual([]);
    expect(reasonsOf(series, 7 * 3600, 21 * 3600)).toEqual([[7, 24, 'cut']]);
  });

  it('does not explain a day that is cut at both ends, which counts as one day', () => {
    const start = FIRST * DAY * 1000;
    const cuts = [
      { day: FIRST, at: 'begin', from: start, to: start + 9 * 3600_000 },
      { day: FIRST, at: 'end', from: start + 15 * 3600_000, to: start + DAY * 1000 },
    ] as const;
    const gaps = gapsOf(coverage({ cuts }), []);
    expect(gaps.map(({ reason }) => reason)).toEqual(['cut', 'cut']);
    expect(gaps.reduce((sum, { amount }) => sum + amount, 0)).toBe(1);
  });

  it('explains the rows that it overlaps, and no others', () => {
    const series = coverage({ gaps: [FIRST * DAY, FIRST * DAY + 6 * 3600] });
    expect(reasonsOf(series, 3600 + 600, 2 * 3600 + 60)).toEqual([
      [0, 1, 'unexplained'],
      [1, 3, 'halt'],
      [3, 6, 'unexplained'],
    ]);
  });

  it('explains a day without a file when it lasted the whole day', () => {
    const series = coverage({ absent: [{ from: FIRST, to: FIRST + 3, reason: 'unexplained' }] });
    expect(reasonsOf(series, DAY - 1, 2 * DAY + 60)).toEqual([
      [0, 24, 'unexplained'],
      [24, 48, 'halt'],
      [48, 72, 'unexplained'],
    ]);
  });

  it('does not replace a recorded reason', () => {
    const series = coverage({ absent: [{ from: FIRST, to: FIRST + 1, reason: 'not-listed-yet' }] });
    expect(reasonsOf(series, 0, DAY)).toEqual([[0, 24, 'not-listed-yet']]);
  });
});

describe('config/halts.json', () => {
  const line = { market: 'spot', from: '2024-01-01T03:00:00Z', to: '2024-01-01T04:00:00Z', source: 'a page' };

  it('is read', () => {
    expect(parseHalts([line])).toEqual([{ ...line, datasets: ['klines', 'trades', 'aggTrades'] }]);
  });

  it('has the maintenance of the spot market with sources, in order', () => {
    const halts = readHalts();
    expect(halts.length).toBeGreaterThan(20);
    expect(halts.every(({ source }) => source.startsWith('https://'))).toBe(true);
    const times = halts.flatMap(({ from, to }) => [Date.parse(from), Date.parse(to)]);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    const [from, to] = ['2019-05-15T03:00:00Z', '2019-05-15T13:00:00Z'].map(
      (text) => Date.parse(text) / 1000,
    );
    const day = Math.floor((from ?? 0) / DAY);
    const known = halts.flatMap((halt) => [Date.parse(halt.from) / 1000, Date.parse(halt.to) / 1000]);
    const series = coverage({ from: day, to: day + 1, gaps: [from ?? 0, to ?? 0] });
    expect(gapsOf(series, known).map(({ reason }) => reason)).toEqual(['halt']);
  });

  it.each([
    ['no source', { ...line, source: '' }],
    ['an end before its beginning', { ...line, to: '2024-01-01T02:00:00Z' }],
    ['an unknown market', { ...line, market: 'margin' }],
    ['a time that is not UTC', { ...line, from: '2024-01-01T03:00:00+09:00' }],
    ['a key too many', { ...line, symbol: 'BTCUSDT' }],
  ])('is refused when it has %s', (_, wrong) => {
    expect(() => parseHalts([wrong])).toThrow(/Invalid|not UTC|ends before/);
  });
});
