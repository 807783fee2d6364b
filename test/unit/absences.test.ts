import { describe, expect, it } from 'vitest';
import { DAY_MS, dayPeriod, monthPeriod, monthOf, parseDay } from '../../src/model/calendar.js';
import { Absences, isDue } from '../../src/lake/absences.js';
import type { AbsentLine } from '../../src/lake/absences.js';

const day = (text: string): number => parseDay(text) ?? Number.NaN;

function line(changes: Partial<AbsentLine>): AbsentLine {
  return {
    v: 1,
    kind: 'absent',
    cadence: 'daily',
    first: '2026-11-01',
    last: '2026-11-03',
    reason: 'hole',
    asked: 1,
    at: '2026-11-05T08:00:00.000Z',
    tool: 'cryptodl test',
    ...changes,
  };
}

describe('absences', () => {
  it('knows each period of a line, by its latest word', () => {
    const absences = new Absences();
    absences.add(line({}));
    absences.add(line({ first: '2026-11-03', last: '2026-11-04', reason: 'delisted', asked: 4 }));
    absences.add(line({ cadence: 'monthly', first: '2025-12', last: '2026-01' }));
    expect(absences.of(dayPeriod(day('2026-10-31')))).toBeUndefined();
    expect(absences.of(dayPeriod(day('2026-11-01')))?.reason).toBe('hole');
    expect(absences.of(dayPeriod(day('2026-11-03')))).toMatchObject({ reason: 'delisted', asked: 4 });
    expect(absences.of(monthPeriod(monthOf(day('2025-12-15'))))?.reason).toBe('hole');
    expect(absences.of(monthPeriod(monthOf(day('2026-01-15'))))?.reason).toBe('hole');
    expect(absences.of(monthPeriod(monthOf(day('2026-02-15'))))).toBeUndefined();
  });

  it.each([
    ['a day that is none', { first: '2026-11-31' }],
    ['an instant that is none', { at: 'yesterday' }],
    ['a count that is none', { asked: 0 }],
  ])('refuses %s', (_, changes) => {
    expect(() => {
      new Absences().add(line(changes));
    }).toThrow(/are not periods/);
  });
});

describe('isDue', () => {
  const at = Date.parse('2026-11-05T08:00:00Z');

  it('asks for a day that was not published after minutes, twice as late each time, and after a month at the latest', () => {
    const due = (asked: number, waitMs: number): boolean =>
      isDue({ reason: 'not-published-yet', asked, atMs: at }, at + waitMs);
    expect(due(1, 599_999)).toBe(false);
    expect(due(1, 600_000)).toBe(true);
    expect(due(2, 1_199_999)).toBe(false);
    expect(due(2, 1_200_000)).toBe(true);
    expect(due(1_000, 30 * DAY_MS - 1)).toBe(false);
    expect(due(1_000, 30 * DAY_MS)).toBe(true);
  });

  it('asks when the clock was set back', () => {
    expect(isDue({ reason: 'hole', asked: 9, atMs: at }, at - 1)).toBe(true);
  });
});
