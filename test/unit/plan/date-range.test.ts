import { describe, expect, it } from 'vitest';
import { dayText } from '../../../src/model/calendar.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { isRangeGiven, resolveRange } from '../../../src/plan/select/date-range.js';
import type { RangeOptions } from '../../../src/plan/select/date-range.js';
import { date } from '../../../src/plan/options/dates.js';
import type { DateOption } from '../../../src/plan/options/dates.js';

const NONE: RangeOptions = { days: undefined, months: undefined, from: undefined, to: undefined };
const from = (value: string): { from: DateOption } => ({ from: date(value, '--from') });
const to = (value: string): { to: DateOption } => ({ to: date(value, '--to') });
const VENUE = { firstDay: '2017-07-01', dayStartMs: 0 };
const NOON = Date.parse('2024-03-15T12:00:00Z');

/** First and last day of the range. */
function range(options: Partial<RangeOptions>, now = NOON): (string | undefined)[] {
  const resolved = resolveRange({ ...NONE, ...options }, now, VENUE);
  return [resolved.from === undefined ? undefined : dayText(resolved.from), dayText(resolved.to - 1)];
}

function refusal(options: Partial<RangeOptions>): string[] {
  try {
    resolveRange({ ...NONE, ...options }, NOON, VENUE);
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'usage') return [error.message, error.hint ?? ''];
  }
  throw new Error('was accepted');
}

it('without anything it is the last complete day', () => {
  expect(range({})).toEqual(['2024-03-14', '2024-03-14']);
  expect(isRangeGiven(NONE)).toBe(false);
});

describe('--days', () => {
  it('begin with the first day of the archive if they reach further back', () => {
    expect(range({ days: 99_999_999 })).toEqual(['2017-07-01', '2024-03-14']);
  });

  it('turns over at midnight UTC', () => {
    expect(range({ days: 1 }, Date.parse('2024-03-15T00:00:00Z') - 1)).toEqual(['2024-03-13', '2024-03-13']);
    expect(range({ days: 1 }, Date.parse('2024-03-15T00:00:00Z'))).toEqual(['2024-03-14', '2024-03-14']);
  });
});

describe('--months', () => {
  it('takes whole months before this one', () => {
    expect(range({ months: 1 })).toEqual(['2024-02-01', '2024-02-29']);
    expect(range({ months: 3 })).toEqual(['2023-12-01', '2024-02-29']);
  });
});

describe('--from and --to', () => {
  it('end with yesterday, or begin with each series, where one is missing', () => {
    expect(range(from('2024-03-01'))).toEqual(['2024-03-01', '2024-03-14']);
    expect(range(to('2024-03-01'))).toEqual([undefined, '2024-03-01']);
  });

  it('refuse to go backwards', () => {
    const [message, hint] = refusal({ ...from('2024-02-02'), ...to('2024-02-01') });
    expect(message).toBe('--from 2024-02-02 is after --to 2024-02-01');
    expect(hint).toContain('choose days from');
  });

  it.each([
    ['2024-01', '2024-01', '2024-01-01', '2024-01-31'],
    ['2023', '2023', '2023-01-01', '2023-12-31'],
    ['20240131', '2024-02', '2024-01-31', '2024-02-29'],
    ['yesterday', 'yesterday', '2024-03-14', '2024-03-14'],
    ['2024-03', 'today', '2024-03-01', '2024-03-14'],
    ['2024-03', 'now', '2024-03-01', '2024-03-14'],
    // The month and the year are not over.
    ['2024-03', '2024-03', '2024-03-01', '2024-03-14'],
    ['2024', '2024', '2024-01-01', '2024-03-14'],
  ])('from %s to %s is %s … %s', (first, last, begin, end) => {
    expect(range({ ...from(first), ...to(last) })).toEqual([begin, end]);
  });

  it('end with yesterday if the given day is not over, and need a day before it', () => {
    expect(range({ ...from('2024-03'), ...to('2024-04') })).toEqual(['2024-03-01', '2024-03-14']);
    expect(range(to('2024-03-15'))).toEqual([undefined, '2024-03-14']);
    const [message, hint] = refusal(from('today'));
    expect(message).toBe('--from 2024-03-15 is after --to 2024-03-14');
    expect(hint).toBe('choose days from 2017-07-01 to 2024-03-14, the last complete day');
    expect(refusal(to('2010'))[0]).toBe('--from 2017-07-01 is after --to 2010-12-31');
  });

  it('follow the clock of the run at midnight UTC', () => {
    const midnight = Date.parse('2024-03-15T00:00:00Z');
    expect(range(to('yesterday'), midnight - 1)).toEqual([undefined, '2024-03-13']);
    expect(range(to('yesterday'), midnight)).toEqual([undefined, '2024-03-14']);
    expect(range({ ...from('2024-03'), ...to('2024-03') }, midnight - 1)).toEqual([
      '2024-03-01',
      '2024-03-13',
    ]);
  });
});

it.each([
  { days: 1, months: 1 },
  { days: 1, ...to('2024-01-01') },
  { months: 1, ...from('2024-01-01'), ...to('2024-01-01') },
])('different kinds of range are refused together: %j', (options) => {
  expect(refusal(options)[0]).toContain('are different kinds of range');
  expect(isRangeGiven({ ...NONE, ...options })).toBe(true);
});

function text(options: Partial<RangeOptions>): string {
  return resolveRange({ ...NONE, ...options }, NOON, VENUE).text;
}

it('is printed in full', () => {
  expect(text({ days: 1 })).toBe('2024-03-14 … 2024-03-14 (1 day)');
  expect(text({ days: 2 })).toBe('2024-03-13 … 2024-03-14 (2 days)');
  expect(text(to('2024-03-01'))).toBe('the start of each series … 2024-03-01');
});
