/** The first days of calendar periods, compared with the calendar of JavaScript. */
import { assert, constantFrom, integer, property } from 'fast-check';
import { expect, it } from 'vitest';
import { calendarStart, nextCalendarStart, parseDay } from '../../../src/model/calendar.js';
import { DAY_MS } from '../../../src/model/units.js';

const begins = {
  day: () => true,
  week: (date: Date) => date.getUTCDay() === 1,
  month: (date: Date) => date.getUTCDate() === 1,
  quarter: (date: Date) => date.getUTCDate() === 1 && date.getUTCMonth() % 3 === 0,
  year: (date: Date) => date.getUTCDate() === 1 && date.getUTCMonth() === 0,
} as const;
const PERIODS = Object.keys(begins) as (keyof typeof begins)[];

const isStart = (day: number, period: keyof typeof begins): boolean => begins[period](new Date(day * DAY_MS));

it('a period begins with the last first day, and the next one with the next first day', () => {
  assert(
    property(integer({ min: 0, max: 60_000 }), constantFrom(...PERIODS), (day, period) => {
      const start = calendarStart(day, period);
      const next = nextCalendarStart(day, period);
      expect(isStart(start, period) && isStart(next, period)).toBe(true);
      expect(start <= day && day < next).toBe(true);
      for (let between = start + 1; between < next; between += 1)
        expect(isStart(between, period)).toBe(false);
    }),
  );
});

it.each([
  ['2024-03-10', 'week', '2024-03-04', '2024-03-11'],
  ['2024-03-11', 'week', '2024-03-11', '2024-03-18'],
  ['2024-02-29', 'month', '2024-02-01', '2024-03-01'],
  ['2024-12-31', 'quarter', '2024-10-01', '2025-01-01'],
  ['2024-02-29', 'year', '2024-01-01', '2025-01-01'],
] as const)('%s lies in the %s from %s until %s', (day, period, start, next) => {
  expect(calendarStart(parseDay(day) ?? 0, period)).toBe(parseDay(start));
  expect(nextCalendarStart(parseDay(day) ?? 0, period)).toBe(parseDay(next));
});
