import { describe, expect, it } from 'vitest';
import { longestGaps } from '../../../src/convert/row-times.js';
import { readTimes } from '../../../src/convert/read-times.js';

const EPOCH = { type: 'time' } as const;
const DATETIME = { type: 'datetime' } as const;
const MS = Date.UTC(2024, 0, 15, 1, 2, 3);

describe('the times of rows', () => {
  it.each([
    ['milliseconds', EPOCH, `${MS},1\n${MS + 1},2\n`, [MS * 1000, (MS + 1) * 1000]],
    ['microseconds', EPOCH, `${MS}007,1\n`, [MS * 1000 + 7]],
    ['both', EPOCH, `${MS},1\n${MS}000,1\n`, [MS * 1000, MS * 1000]],
    ['dates and times', DATETIME, '2024-01-15 01:02:03,1\n', [MS * 1000]],
    ['other dates', DATETIME, '2024-02-29 00:00:00,1\n2025-12-31 23:59:59,', [17_091_648e8, 1_767_225_599e6]],
    ['a last line without an end', EPOCH, `${MS},1`, [MS * 1000]],
    ['carriage returns', EPOCH, `${MS},1\r\n${MS},1\r\n`, [MS * 1000, MS * 1000]],
  ])('are read: %s', (...[, column, csv, expected]) => {
    const times = readTimes(Buffer.from(csv), column, { fromByte: 0, rows: expected.length });
    expect([...(times ?? [])]).toEqual(expected);
  });

  it('are read after a header', () => {
    const csv = Buffer.from(`open_time,open\n${MS},1\n`);
    expect([...(readTimes(csv, EPOCH, { fromByte: 15, rows: 1 }) ?? [])]).toEqual([MS * 1000]);
  });

  it.each([
    ['12 digits', EPOCH, '170528052300,1\n'],
    ['14 digits', EPOCH, '17052805230000,1\n'],
    ['15 digits', EPOCH, '170528052300000,1\n'],
    ['17 digits', EPOCH, '17052805230000000,1\n'],
    ['a leading zero', EPOCH, '0705280523000,1\n'],
    ['a fraction', EPOCH, '1705280523000.5,1\n'],
    ['a space', EPOCH, ' 1705280523000,1\n'],
    ['a space at its end', EPOCH, '1705280523000 ,1\n'],
    ['a quote', EPOCH, '"1705280523000",1\n'],
    ['a sign', EPOCH, '-1705280523000,1\n'],
    ['no comma', EPOCH, '1705280523000\n'],
    ['an empty cell', EPOCH, ',1\n'],
    ['an empty line', EPOCH, '\n'],
    ['a time beyond exact numbers', EPOCH, '9007199254740993,1\n'],
    ['a T', DATETIME, '2024-01-15T01:02:03,1\n'],
    ['a date alone', DATETIME, '2024-01-15,1,2,3,4,5,6\n'],
    ['a fraction of a second', DATETIME, '2024-01-15 01:02:03.5,1\n'],
    ['slashes', DATETIME, '2024/01/15 01:02:03,1\n'],
    ['a slash after the year', DATETIME, '2024/01-15 01:02:03,1\n'],
    ['a slash', DATETIME, '2024-01/15 01:02:03,1\n'],
    ['points', DATETIME, '2024-01-15 01.02:03,1\n'],
    ['a point', DATETIME, '2024-01-15 01:02.03,1\n'],
    ['hour 24', DATETIME, '2024-01-15 24:00:00,1\n'],
    ['minute 60', DATETIME, '2024-01-15 00:60:00,1\n'],
    ['second 60', DATETIME, '2024-01-15 00:00:60,1\n'],
    ['month 13', DATETIME, '2024-13-15 00:00:00,1\n'],
    ['month 0', DATETIME, '2024-00-15 00:00:00,1\n'],
    ['30 February', DATETIME, '2024-02-30 00:00:00,1\n'],
    ['29 February of another year', DATETIME, '2023-02-29 00:00:00,1\n'],
    ['day 0', DATETIME, '2024-01-00 00:00:00,1\n'],
    ['the year 1999', DATETIME, '1999-12-31 00:00:00,1\n'],
    ['the year 3000', DATETIME, '3000-01-01 00:00:00,1\n'],
    ['letters', DATETIME, '2024-0a-15 00:00:00,1\n'],
    ['letters in the time', DATETIME, '2024-01-15 0a:00:00,1\n'],
    ['a cut line', DATETIME, '2024-01-15 00:00'],
  ])('with %s are not read', (...[, column, csv]) => {
    expect(readTimes(Buffer.from(csv), column, { fromByte: 0, rows: 1 })).toBeUndefined();
  });

  it.each([1, 3])('are not read if the number of lines is 2 instead of %d', (rows) => {
    const csv = Buffer.from(`${MS},1\n${MS},1\n`);
    expect(readTimes(csv, EPOCH, { fromByte: 0, rows })).toBeUndefined();
  });
});

it('more gaps than a manifest line holds: the longest are kept, in order of time', () => {
  const hour = (at: number): string => new Date(at * 3_600_000).toISOString();
  const gaps = Array.from({ length: 150 }, (_, at) => [hour(2 * at), hour(2 * at + 1)] as const);
  const day = [hour(400), hour(424)] as const;
  expect(longestGaps([...gaps, day])).toEqual([...gaps.slice(0, 99), day]);
});
