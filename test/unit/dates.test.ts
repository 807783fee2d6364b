import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { dayText, monthOf, monthStart } from '../../src/model/calendar.js';
import { firstDay, lastDay } from '../../src/plan/options/dates.js';
import { day } from '../helpers/conversion.js';

const dayNumber = fc.integer({ min: day('2000-01-01'), max: day('2199-12-31') });

function days(text: string): [string, string] {
  const from = firstDay(text, '--from');
  const to = lastDay(text, '--to');
  if (from.kind !== 'days' || to.kind !== 'days') throw new Error(`${text} is a word`);
  expect([from.text, to.text]).toEqual([dayText(from.first), dayText(to.last)]);
  return [dayText(from.first), dayText(to.last)];
}

it('a date is a day in several forms, a whole month or a whole year', () => {
  fc.assert(
    fc.property(dayNumber, (number) => {
      const text = dayText(number);
      const [year = '', month = '', date = ''] = text.split('-');
      const forms = [
        text,
        year + month + date,
        `${year}/${month}/${date}`,
        `${year}-${Number(month)}-${Number(date)}`,
        `${text}T00:00:00Z`,
        `${text} 08:30`,
        String(number * 86_400_000),
      ];
      for (const form of forms.filter((each) => !/^\d{10,12}$/.test(each)))
        expect(days(form)).toEqual([text, text]);
      const ends = [dayText(monthStart(monthOf(number))), dayText(monthStart(monthOf(number) + 1) - 1)];
      for (const form of [`${year}-${month}`, year + month, `${year}/${Number(month)}`])
        expect(days(form)).toEqual(ends);
      expect(days(year)).toEqual([`${year}-01-01`, `${year}-12-31`]);
    }),
  );
});

it.each([
  ['31.01.2024', '2024-01-31'],
  ['01/31/2024', '2024-01-31'],
])('the order of %s is known', (text, meant) => {
  expect(days(text)).toEqual([meant, meant]);
});

it.each([
  ['yesterday', 1],
  ['Yesterday', 1],
  ['today', 0],
  ['now', 0],
])('a date may be the word %s', (text, daysAgo) => {
  const word = { kind: 'word', text: text.toLowerCase(), daysAgo };
  expect(firstDay(text, '--from')).toEqual(word);
  expect(lastDay(text, '--to')).toEqual(word);
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
  expect(() => firstDay(text, 'CRYPTODL_FROM')).toThrow(
    expect.objectContaining({
      code: 'usage',
      message: `CRYPTODL_FROM: "${text}" is not a date`,
      hint: 'for example 2024-01-31 or 2024-01 or 2024 or yesterday',
    }),
  );
});
