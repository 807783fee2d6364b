import { describe, expect, it } from 'vitest';
import { parseDay } from '../../../src/model/calendar.js';
import { absentDays } from '../../../src/lake/catalogue/absent-days.js';
import { Absences } from '../../../src/lake/absences.js';
import type { AbsenceReason } from '../../../src/model/absence-reasons.js';

const day = (text: string): number => parseDay(text) ?? Number.NaN;
/** Held from the 10th to the 19th of November. */
const HELD = [day('2026-11-10'), day('2026-11-20')];

/** The reported reason when this reason is recorded for one day or month. */
function toldOf(label: string, reason: AbsenceReason, today: string, at = `${today}T12:00:00Z`): string {
  const absences = new Absences();
  const cadence = label.length === 7 ? 'monthly' : 'daily';
  const line = { v: 1, kind: 'absent', asked: 1, at, tool: 'test' } as const;
  absences.add({ ...line, cadence, first: label, last: label, reason });
  const of = day(label.length === 7 ? `${label}-01` : label);
  const held = label.length === 7 ? [day('2026-10-01'), day('2026-11-01')] : HELD;
  return absentDays(held, of, of + 1, { absences, today: day(today) })[0]?.reason ?? 'held';
}

describe('a remembered reason', () => {
  it.each([
    ['a day that is not due', '2026-11-20', 'not-published-yet', '2026-11-22', 'not-published-yet'],
    ['a day that is late', '2026-11-20', 'not-published-yet', '2026-11-23', 'stalled'],
    ['a month that is not due', '2026-11', 'not-published-yet', '2026-12-10', 'not-published-yet'],
    ['a month that is late', '2026-11', 'not-published-yet', '2026-12-11', 'stalled'],
    ['a day before the first', '2026-11-09', 'not-listed-yet', '2026-11-21', 'not-listed-yet'],
    ['a day behind the last', '2026-11-20', 'delisted', '2027-11-21', 'delisted'],
  ] as const)('holds of %s as long as it can', (_, label, reason, today, told) => {
    expect(toldOf(label, reason, today)).toBe(told);
  });

  it('tells a late day that no run has asked for since it is due', () => {
    expect(toldOf('2026-11-20', 'not-published-yet', '2026-11-23', '2026-11-22T12:00:00Z')).toBe(
      'not-fetched',
    );
  });

  it('stays when the month is refused in place of held days that have more rows', () => {
    const absences = new Absences();
    const line = { v: 1, kind: 'absent', asked: 1, at: '2026-12-05T12:00:00Z', tool: 'test' } as const;
    const [first, last] = ['2026-11-20', '2026-11-20'];
    absences.add({ ...line, cadence: 'daily', first, last, reason: 'delisted' });
    const month = { cadence: 'monthly', first: '2026-11', last: '2026-11', reason: 'hole' } as const;
    absences.add({ ...line, ...month, at: '2026-12-06T12:00:00Z', failed: 'month-incomplete' });
    const found = absentDays(HELD, day(first), day('2026-11-30'), { absences, today: day('2026-12-06') });
    expect(found.map(({ reason }) => reason)).toEqual(['delisted']);
  });

  it.each(['not-published-yet', 'delisted', 'not-listed-yet', 'dataset-ended', 'before-history'] as const)(
    'is no excuse any more when days on both sides are held: %s',
    (reason) => {
      const absences = new Absences();
      const line = { v: 1, kind: 'absent', cadence: 'daily', asked: 1, tool: 'test' } as const;
      const [first, last] = ['2026-11-15', '2026-11-15'];
      absences.add({ ...line, first, last, reason, at: '2026-11-16T00:00:00Z' });
      const of = day(first);
      const held = [day('2026-11-10'), of, of + 1, day('2026-11-20')];
      const found = absentDays(held, day('2026-11-10'), day('2026-11-20'), {
        absences,
        today: day('2026-11-20'),
      });
      expect(found).toEqual([{ from: of, to: of + 1, reason: 'unexplained' }]);
    },
  );
});
