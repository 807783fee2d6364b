import { describe, expect, it } from 'vitest';
import { GapGroups } from '../../../src/lake/catalogue/gap-texts.js';
import type { Gap } from '../../../src/lake/catalogue/gap.js';

const OF = { rowSeconds: 60, dayStartSeconds: 0 };
const gapAt = (minute: number, amount = 1): Gap => ({
  fromSeconds: minute * 60,
  toSeconds: (minute + amount) * 60,
  state: 'absent',
  reason: 'hole',
  amount,
  isMissing: true,
});

const DAYS = { rowSeconds: undefined, dayStartSeconds: 0 };
const DAY = 86_400;

/** The lines for these gaps, each of a series of its own: A, B, C … */
function linesOf(gaps: readonly (readonly [Gap, (typeof OF | typeof DAYS)?])[], isAll = false): string[] {
  const groups = new GapGroups(isAll);
  for (const [index, [gap, of = OF]] of gaps.entries())
    groups.add(String.fromCodePoint(65 + index), of, [gap]);
  return groups.lines();
}

describe('gaps', () => {
  const at = (day: number, reason: Gap['reason'] = 'hole'): Gap => ({
    ...gapAt(day * 1440),
    toSeconds: (day + 1) * DAY,
    reason,
  });

  it('of the same time and the same reason are one line, with up to three names', () => {
    expect(linesOf([])).toEqual([]);
    expect(linesOf([[gapAt(5)]])).toEqual(['missing:', '  1970-01-01 00:05: A, hole, 1 row']);
    expect(linesOf([[gapAt(5, 2)], [gapAt(5, 2)], [gapAt(5, 2)]])).toEqual([
      'missing:',
      '  1970-01-01 00:05 … 00:06: A B C, hole, 6 rows',
    ]);
    expect(linesOf(Array.from({ length: 4 }, () => [gapAt(5, 2)]))[1]).toBe(
      '  1970-01-01 00:05 … 00:06: 4 symbols, hole, 8 rows',
    );
  });

  it.each<[string, Gap, (typeof OF | typeof DAYS)?]>([
    ['begin', { ...gapAt(4, 3), amount: 3 }],
    ['end', { ...gapAt(5, 3), amount: 3 }],
    ['reason', { ...gapAt(5, 2), reason: 'unexplained' }],
    ['unit', gapAt(5, 2), DAYS],
    ['exactness', { ...gapAt(5, 2), isLoose: true }],
  ])('of another %s are a line of their own', (_, other, of = OF) => {
    const lines = linesOf([[gapAt(5, 2)], [other, of]]);
    expect([lines.length, lines[0]]).toEqual([3, 'missing, worst first:']);
    expect(lines.filter((line) => line.endsWith('A, hole, 2 rows'))).toHaveLength(1);
  });

  it('are in the order of their amounts, then of their times', () => {
    const lines = linesOf([[gapAt(9)], [gapAt(5, 2)], [gapAt(3)], [gapAt(7, 3)], [gapAt(6)]]);
    expect(lines.slice(1).map((line) => line.split(': ')[1]?.slice(0, 1))).toEqual(['D', 'B', 'C', 'E', 'A']);
  });

  it('at unknown places of a time say so', () => {
    const loose = { ...gapAt(0, 1440), amount: 1, isLoose: true } as const;
    expect(linesOf([[loose]])[1]).toBe('  1970-01-01: A, hole, 1 row somewhere');
  });

  it('of days end with the last day, and those of a cut day with the minute', () => {
    expect(linesOf([[at(2), DAYS]])[1]).toBe('  1970-01-03: A, hole, 1 day');
    const cut = { ...at(2, 'cut'), fromSeconds: 2 * DAY + 7 * 3600 };
    expect(linesOf([[cut, DAYS]])[1]).toBe('  1970-01-03 07:00 … 23:59: A, cut, 1 day');
    const hours = { ...gapAt(60, 120), amount: 2 };
    expect(linesOf([[hours, { ...OF, rowSeconds: 3600 }]])[1]).toBe(
      '  1970-01-01 01:00 … 02:00: A, hole, 2 rows',
    );
    expect(linesOf([[hours, { rowSeconds: 3600, dayStartSeconds: 7200 }]])[1]).toContain('03:00 … 04:00');
  });

  it('more than ten are shown with --all alone', () => {
    const eleven = Array.from({ length: 11 }, (_, index) => [gapAt(2 * index)] as const);
    expect(linesOf(eleven.slice(1))).toHaveLength(11);
    expect(linesOf(eleven)).toHaveLength(12);
    expect(linesOf(eleven).at(-1)).toBe('  and 1 more gaps: --all shows all, --json shows them by series');
    expect(linesOf(eleven, true).at(-1)).toContain('1970-01-01 00:20: K, ');
  });

  it('in which no data is expected are counted by unit and reason, apart', () => {
    const quiet = (reason: Gap['reason'], amount: number): Gap => ({
      ...at(1, reason),
      amount,
      isMissing: false,
    });
    expect(
      linesOf([[quiet('halt', 60)], [quiet('delisted', 1)], [quiet('halt', 1)], [quiet('halt', 2), DAYS]]),
    ).toEqual(['excused: 61 rows exchange halt, 1 row delisted, 2 days exchange halt']);
  });
});

describe('very many different gaps', () => {
  const minutes = Array.from({ length: 60_001 }, (_, index) => gapAt(2 * index));

  it('keep the worst in memory, and count the others', () => {
    const groups = new GapGroups(false);
    groups.add('A', OF, [gapAt(1_000_000, 500), ...minutes]);
    groups.add(
      'B',
      OF,
      minutes.map(({ fromSeconds }) => gapAt(fromSeconds / 60 + 200_000)),
    );
    expect(groups.lines()).toHaveLength(12);
    expect(groups.lines()[1]).toBe('  1971-11-26 10:40 … 18:59: A, hole, 500 rows');
    expect(groups.lines().at(-1)).toContain('and 119,993 more gaps');
  });

  it('are all shown with --all', () => {
    const groups = new GapGroups(true);
    groups.add('A', OF, minutes);
    groups.add(
      'B',
      OF,
      minutes.map(({ fromSeconds }) => gapAt(fromSeconds / 60 + 200_000)),
    );
    expect(groups.lines()).toHaveLength(120_003);
  });
});
