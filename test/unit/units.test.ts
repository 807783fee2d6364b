import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesText, durationText, parseBytes, parseDurationMs } from '../../src/units.js';

describe('durations', () => {
  it.each([
    ['0', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5h', 5_400_000],
    ['2m', 120_000],
    ['7d', 604_800_000],
  ])('%s is understood', (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  it.each(['', '5', '-1s', '1 s', '1S', 's', '1.s', '.5s', '1e3s', '1s2', 'Infinitys'])(
    '%j is none',
    (text) => {
      expect(parseDurationMs(text)).toBeUndefined();
    },
  );

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

  it('are never written with 60 seconds or 60 minutes', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 8e6, noNaN: true }), (ms) => {
        expect(durationText(ms)).not.toMatch(/\b60s|\b60m|\b1000ms|\b120s/);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('sizes', () => {
  it.each([
    ['1024', 1024],
    ['1kB', 1000],
    ['500MB', 500e6],
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

  it.each(['', '-1', 'MB', '1XB', '1e3', '1,5MB', '0x10', '1MB ', ' 1MB'])('%j is none', (text) => {
    expect(parseBytes(text)).toBeUndefined();
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
