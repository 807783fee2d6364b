import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dayOf,
  dayPeriod,
  daysWithin,
  dayText,
  monthOf,
  monthPeriod,
  parseDay,
  parsePeriod,
  periodText,
  startOfDay,
  UTC,
} from '../../../src/model/calendar.js';

const FIRST = Math.floor(Date.UTC(2017, 0, 1) / 86_400_000);
const END = Math.floor(Date.UTC(2036, 0, 1) / 86_400_000);
const dayNumber = fc.integer({ min: FIRST, max: END - 1 });

it('every day and month from 2017 to 2035 is read back from its text', () => {
  fc.assert(
    fc.property(dayNumber, (day) => {
      const [daily, monthly] = [dayPeriod(day), monthPeriod(monthOf(day))];
      for (const period of [daily, monthly, daily])
        for (const cadence of ['daily', 'monthly'] as const)
          expect(parsePeriod(cadence, periodText(period))).toEqual(
            cadence === period.cadence ? period : undefined,
          );
    }),
    { numRuns: 1000 },
  );
});

it('a day begins at midnight UTC', () => {
  expect(dayText(dayOf(Date.parse('2024-01-15T00:00:00Z'), UTC))).toBe('2024-01-15');
  expect(dayText(dayOf(Date.parse('2024-01-15T00:00:00Z') - 1, UTC))).toBe('2024-01-14');
  expect(dayText(dayOf(-1, UTC))).toBe('1969-12-31');
});

describe('text that is no date gives no date', () => {
  it.each(['2024-1-1', '2024-01-01 ', '2024-01-01T00:00:00Z', '', '-2024-01-01', '20240101'])(
    '%j',
    (text) => {
      expect(parseDay(text)).toBeUndefined();
      expect(parsePeriod('daily', text)).toBeUndefined();
    },
  );

  it.each(['2020-8', '2024-13', '2024-00', '2024-01-15', '2024', ''])('%j is no month', (text) => {
    expect(parsePeriod('monthly', text)).toBeUndefined();
  });
});

it('days may begin before midnight UTC', () => {
  const dayStart = { dayStartMs: -8 * 3_600_000 };
  const start = Date.parse('2024-01-14T16:00:00Z');
  expect([start - 1, start].map((ms) => dayText(dayOf(ms, dayStart)))).toEqual(['2024-01-14', '2024-01-15']);
  expect(startOfDay(dayOf(start, dayStart), dayStart)).toBe(start);
  const days = (from: string, to: string): string[] =>
    daysWithin(monthPeriod(monthOf(dayOf(start, UTC))), [[from, to]], dayStart).map(dayText);
  expect(days('2024-01-14T16:00:00Z', '2024-01-16T15:59:59Z')).toEqual(['2024-01-15']);
  expect(days('2024-01-14T16:00:01Z', '2024-01-16T16:00:00Z')).toEqual(['2024-01-16']);
});

describe('days and months as a Date has them', () => {
  const day = fc.integer({ min: -800_000, max: 3_000_000 });

  it('for the day of a text, and its month', () => {
    fc.assert(
      fc.property(day, (number) => {
        const date = new Date(number * 86_400_000);
        expect(dayText(number)).toBe(date.toISOString().slice(0, 10));
        expect(monthOf(number)).toBe(date.getUTCFullYear() * 12 + date.getUTCMonth());
        const { from, to } = monthPeriod(monthOf(number));
        expect([from <= number, number < to]).toEqual([true, true]);
        expect(new Date(from * 86_400_000).getUTCDate()).toBe(1);
        expect(monthOf(to)).toBe(monthOf(number) + 1);
      }),
      { numRuns: 2000 },
    );
  });

  it('for a text, also one of a date that does not exist', () => {
    const digits = (length: number, max: number) =>
      fc.integer({ min: 0, max }).map((number) => String(number).padStart(length, '0'));
    fc.assert(
      fc.property(digits(4, 9999), digits(2, 13), digits(2, 32), (year, month, date) => {
        const found = new Date(0);
        found.setUTCFullYear(Number(year), Number(month) - 1, Number(date));
        const text = `${year}-${month}-${date}`;
        const isThere = found.toISOString().startsWith(text);
        expect(parseDay(text)).toBe(isThere ? found.getTime() / 86_400_000 : undefined);
      }),
      { numRuns: 5000 },
    );
  });
});
