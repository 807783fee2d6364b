import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { dayText, monthOf, monthStart } from '../../../src/model/calendar.js';
import { date } from '../../../src/plan/options/dates.js';
import { day } from '../../helpers/conversion.js';

const dayNumber = fc.integer({ min: day('2000-01-01'), max: day('2199-12-31') });

function days(text: string): [string, string] {
  const found = date(text, '--from');
  if (found.kind !== 'days') throw new Error(`${text} is a word`);
  return [dayText(found.firstDay), dayText(found.lastDay)];
}

it('a date is a day in several forms, a whole month or a whole year', () => {
  fc.assert(
    fc.property(dayNumber, (number) => {
      const text = dayText(number);
      const [year = '', month = '', ofMonth = ''] = text.split('-');
      for (const form of [text, year + month + ofMonth, `${year}/${month}/${ofMonth}`])
        expect(days(form)).toEqual([text, text]);
      const ends = [dayText(monthStart(monthOf(number))), dayText(monthStart(monthOf(number) + 1) - 1)];
      for (const form of [`${year}-${month}`, year + month, `${year}/${month}`])
        expect(days(form)).toEqual(ends);
      expect(days(year)).toEqual([`${year}-01-01`, `${year}-12-31`]);
    }),
  );
});

it.each([
  ['yesterday', 1],
  ['Yesterday', 1],
  ['today', 0],
  ['now', 0],
])('a date may be the word %s', (text, daysAgo) => {
  const word = { kind: 'word', daysAgo };
  expect(date(text, '--from')).toEqual(word);
});

it.each([
  '05/01/2024',
  '2024-02-30',
  '20230230',
  '2024-13',
  '2024-00',
  '2024-13-01',
  '2024-01-00',
  '2024115',
  '2024-01-05T00:00:00+02:00',
  'x',
  '',
  'tomorrow',
  '-1',
])('%j is refused with the forms of a date', (text) => {
  expect(() => date(text, 'CRYPTODL_FROM')).toThrow(
    expect.objectContaining({
      code: 'usage',
      message: `CRYPTODL_FROM: "${text}" is not a date`,
      hint: 'for example 2024-01-31 or 2024-01 or 2024 or yesterday',
    }),
  );
});
