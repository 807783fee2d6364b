import { describe, expect, it } from 'vitest';
import { dayPeriod, monthPeriod, monthOf, parseDay } from '../../../src/model/calendar.js';
import { DAY_MS } from '../../../src/model/units.js';
import { Absences } from '../../../src/lake/absences.js';
import { isDue } from '../../../src/lake/absences.js';
import type { AbsentLine } from '../../../src/model/manifest-line.js';

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

  it('knows no end any more once a later run found that the series may go on after it', () => {
    const absences = new Absences();
    const later = '2026-11-25T08:00:00.000Z';
    absences.add(line({ last: '2026-11-01', reason: 'delisted' }));
    absences.add(line({ cadence: 'monthly', first: '2026-12', last: '2026-12', reason: 'delisted' }));
    absences.add(line({ first: '2026-11-10', last: '2026-11-20', reason: 'not-published-yet', at: later }));
    absences.add(line({ first: '2026-11-05', last: '2026-11-05', reason: 'delisted', at: later }));
    absences.add(line({ first: '2026-11-21', last: '2026-11-21', reason: 'not-published-yet', at: later }));
    const notDue = {
      cadence: 'monthly',
      first: '2026-11',
      last: '2026-11',
      at: '2026-11-26T08:00:00.000Z',
    } as const;
    absences.add(line({ ...notDue, reason: 'not-published-yet' }));
    const ends = ['2026-11-01', '2026-11-05'].map((text) => absences.of(dayPeriod(day(text)))?.reason);
    // One run may find the end of the days, and expect the month.
    expect(ends).toEqual([undefined, 'delisted']);
    expect(absences.of(monthPeriod(monthOf(day('2026-12-01'))))?.reason).toBe('delisted');
  });

  it.each([
    ['the absence of a day', line({ at: '2026-11-06T08:00:00.000Z' })],
    ['an object of a day', { cadence: 'daily', period: '2026-11-01' } as const],
  ])('knows a failed request of a month until a later one is answered: with %s', (_, answer) => {
    const absences = new Absences();
    absences.add(line({ cadence: 'monthly', first: '2026-11', last: '2026-11', failed: 'http-forbidden' }));
    expect(absences.failureOf(dayPeriod(day('2026-11-30')))).toBe('http-forbidden');
    if ('kind' in answer) absences.add(answer);
    else absences.addObject(answer, true);
    expect(absences.failureOf(dayPeriod(day('2026-11-30')))).toBeUndefined();
    expect(absences.failed()).toEqual([]);
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

  it.each([
    ['after minutes before it can be late', -1, 600_000],
    ['after minutes on the day after it', 0, 600_000],
    ['after minutes in its first week', 7, 600_000],
    ['each day in its second week, also by runs that begin at the same time', 15, 0.75 * DAY_MS],
    ['after ten days in its third month', 80, 9.75 * DAY_MS],
    ['after a month at the latest', 5000, 29.75 * DAY_MS],
  ])('asks for a day that was not published %s', (_, ageDays, waitMs) => {
    const absence = { reason: 'not-published-yet', atMs: at, to: Math.floor(at / DAY_MS) - ageDays } as const;
    expect(isDue(absence, at + waitMs - 1)).toBe(false);
    expect(isDue(absence, at + waitMs)).toBe(true);
  });

  it('asks when the clock was set back', () => {
    expect(isDue({ reason: 'hole', atMs: at, to: 0 }, at - 1)).toBe(true);
  });
});
