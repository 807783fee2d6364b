import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dayText, monthOf, monthStart } from '../../src/model/calendar.js';
import { CryptodlError } from '../../src/model/errors.js';
import { firstDay, lastDay } from '../../src/options/dates.js';
import { day } from '../helpers/conversion.js';

const dayNumber = fc.integer({ min: day('2000-01-01'), max: day('2199-12-31') });

function days(text: string): [string, string] {
  const from = firstDay(text, '--from');
  const to = lastDay(text, '--to');
  if (from.kind !== 'days' || to.kind !== 'days') throw new Error(`${text} is a word`);
  expect([from.text, to.text]).toEqual([dayText(from.first), dayText(to.last)]);
  return [dayText(from.first), dayText(to.last)];
}

function refusal(text: string): CryptodlError {
  try {
    firstDay(text, 'CRYPTODL_FROM');
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'usage') return error;
    throw error;
  }
  throw new Error(`took ${text}`);
}

describe('a date', () => {
  it('is a day with or without hyphens, a whole month or a whole year', () => {
    fc.assert(
      fc.property(dayNumber, (number) => {
        const text = dayText(number);
        expect(days(text)).toEqual([text, text]);
        expect(days(text.replaceAll('-', ''))).toEqual([text, text]);
        const month = monthOf(number);
        const ends = [dayText(monthStart(month)), dayText(monthStart(month + 1) - 1)];
        expect(days(text.slice(0, 7))).toEqual(ends);
        const year = text.slice(0, 4);
        expect(days(year)).toEqual([`${year}-01-01`, `${year}-12-31`]);
      }),
    );
  });

  it.each([
    ['yesterday', 1],
    ['Yesterday', 1],
    ['today', 0],
    ['now', 0],
  ])('may be the word %s', (text, daysAgo) => {
    const word = { kind: 'word', text: text.toLowerCase(), daysAgo };
    expect(firstDay(text, '--from')).toEqual(word);
    expect(lastDay(text, '--to')).toEqual(word);
  });

  it.each([
    ['2024-02-30', '2024-02-29'],
    ['20230230', '2023-02-28'],
    ['2024-1-5', '2024-01-05'],
    ['2024/01/05', '2024-01-05'],
    ['2024-01-05T00:00:00Z', '2024-01-05'],
    ['2024-1', '2024-01'],
    ['202401', '2024-01'],
    ['31.01.2024', '2024-01-31'],
    ['01/31/2024', '2024-01-31'],
    ['31.02.2024', '2024-02-29'],
  ])('%s is refused, and %s is suggested', (text, meant) => {
    const { message, hint, correction } = refusal(text);
    expect(message).toBe(`CRYPTODL_FROM: "${text}" is not a date`);
    expect(hint).toBe(`CRYPTODL_FROM=${meant}`);
    expect(correction).toEqual({ value: meant });
  });

  it.each([
    '2024-13',
    '2024-00',
    '2024-13-01',
    '2024-01-32',
    '2024-01-00',
    '01/02/2024',
    'x',
    '',
    'tomorrow',
    '-1',
  ])('%j is refused with the forms of a date', (text) => {
    const { message, hint, correction } = refusal(text);
    expect(message).toBe(`CRYPTODL_FROM: "${text}" is not a date`);
    expect(hint).toBe('CRYPTODL_FROM=2024-01-31, 2024-01 (a month), 2024 (a year), yesterday or today');
    expect(correction).toBeUndefined();
  });

  it('is never corrected to another refused date', () => {
    const digits = fc.stringMatching(/^\d{1,4}[-/.]?\d{1,2}[-/.]?\d{0,4}$/);
    const refusedTwice = fc.sample(digits, 2000).filter((text) => {
      const meant = correctionOf(text);
      return meant !== undefined && correctionOf(meant) !== undefined;
    });
    expect(refusedTwice).toEqual([]);
  });
});

/** Undefined for a date that is taken, or refused without a correction. */
function correctionOf(text: string): string | undefined {
  try {
    firstDay(text, '--from');
    return undefined;
  } catch (error) {
    return (error as CryptodlError).correction?.value;
  }
}
