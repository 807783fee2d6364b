import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesText, countText, durationText, numberText, parseBytes } from '../../../src/model/units.js';

describe('durations', () => {
  it.each([
    [0, '0ms'],
    [999, '999ms'],
    [1000, '1s'],
    [72_340, '72.3s'],
    [119_900, '119.9s'],
    [119_999, '2m'],
    [120_000, '2m'],
    [192_000, '3m 12s'],
    [239_900, '4m'],
    [7_199_999, '2h 0m'],
    [7_260_000, '2h 1m'],
    [360_000_000, '100h 0m'],
  ])('%d ms is written %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  it('are written in the largest unit below 120 of it, and never carry 60 seconds or minutes beside it', () => {
    fc.assert(
      // Integers: doubles would hardly ever fall near a minute or an hour.
      fc.property(fc.integer({ min: 0, max: 8_000_000 }), (ms) => {
        const match = /^(?:(\d+)ms|(\d+(?:\.\d)?)s|(\d+)m(?: (\d+)s)?|(\d+)h (\d+)m)$/.exec(durationText(ms));
        const [msPart = 0, seconds = 0, minutes = 0, besideMinutes = 0, hours = 0, besideHours = 0] =
          match?.slice(1).map((part: string | undefined) => Number(part ?? 0)) ?? [];
        expect(match).not.toBeNull();
        expect(msPart).toBeLessThan(1000);
        expect(seconds).toBeLessThan(120);
        expect(minutes).toBeLessThan(120);
        expect(Math.max(besideMinutes, besideHours)).toBeLessThan(60);
        const said =
          msPart + (seconds + minutes * 60 + besideMinutes + hours * 3600 + besideHours * 60) * 1000;
        const unitMs = hours > 0 ? 60_000 : minutes > 0 ? 1000 : 100;
        expect(Math.abs(said - ms)).toBeLessThanOrEqual(unitMs);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('sizes', () => {
  it.each([
    ['3KiB', 3072],
    ['1mib', 2 ** 20],
    ['2GiB', 2 ** 31],
    ['1TiB', 2 ** 40],
    ['1GB', 1e9],
    ['1.5 TB', 1.5e12],
    ['7b', 7],
  ])('%s is understood', (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [9949, '9.9 kB'],
    [9960, '10 kB'],
    [999_499, '999 kB'],
    [999_500, '1.0 MB'],
    [1.2e9, '1.2 GB'],
    [5e15, '5000 TB'],
  ])('%d bytes are written %s', (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });
});

describe('numbers', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [1000, '1,000'],
    [-12_345, '-12,345'],
    [1_234_567, '1,234,567'],
    [Number.MAX_SAFE_INTEGER, '9,007,199,254,740,991'],
  ])('%d is %s', (number, text) => {
    expect(numberText(number)).toBe(text);
  });

  it('agree with what they count', () => {
    expect([
      countText(1, 'day'),
      countText(2000, 'day'),
      countText(1, 'series'),
      countText(3, 'series'),
    ]).toEqual(['1 day', '2,000 days', '1 series', '3 series']);
  });
});
