import { describe, expect, it } from 'vitest';
import { silencesAmong } from '../../../src/convert/sequences.js';
import { randoms } from '../../helpers/randoms.js';

const [MINUTE, HOUR] = [60e6, 3600e6];
const DAY = 24 * HOUR;
const LEAST = 10 * MINUTE;

/** The silences of a day with rows at these times, as minutes. */
function silences(times: readonly number[]): number[][] {
  const sorted = [0, ...times.toSorted((a, b) => a - b), DAY];
  const pauses = sorted.slice(1).map((time, index) => [sorted[index] ?? 0, time] as const);
  const long = pauses.filter(([from, to]) => to - from >= LEAST / 10);
  const found = silencesAmong(long, { rows: times.length, leastUs: LEAST });
  return found.map((span) => span.map((us) => Math.round(us / MINUTE)));
}

/** A row every so many minutes, in these minutes of the day. */
function every(step: number, isHeld: (minute: number) => boolean = () => true): number[] {
  const minutes = Array.from({ length: Math.floor(1440 / step) }, (_, index) => index * step);
  return minutes.filter(isHeld).map((minute) => minute * MINUTE);
}

describe('a day is silent', () => {
  it.each<[string, number[], number[][]]>([
    ['at its end', every(0.5, (minute) => minute < 1421), [[1421, 1440]]],
    ['at its start', every(0.5, (minute) => minute >= 40), [[0, 40]]],
    ['within it', every(1, (minute) => minute < 400 || minute > 760), [[399, 761]]],
    [
      'several times',
      every(1, (minute) => minute % 300 < 200),
      [
        [199, 300],
        [499, 600],
        [799, 900],
        [1099, 1200],
        [1399, 1440],
      ],
    ],
    ['for six hours, of 56 rows', every(26, (minute) => minute < 700 || minute > 1060), [[676, 1066]]],
    ['after a single row at its start', [0, ...every(0.5, (minute) => minute >= 40)], [[0, 40]]],
    ['before a single row at its end', [...every(1, (minute) => minute < 400), DAY - 1], [[399, 1440]]],
    ['for most of it', every(0.5, (minute) => minute < 60), [[60, 1440]]],
  ])('%s', (_, times, expected) => {
    expect(silences(times)).toEqual(expected);
  });

  it.each<[string, number[]]>([
    ['with a row each minute', every(1)],
    ['with pauses of less than ten times the others', every(5, (minute) => minute < 400 || minute > 435)],
    ['with pauses of less than ten minutes', every(0.1, (minute) => minute < 400 || minute > 409)],
    [
      'with single rows between long pauses',
      [...every(0.1, (minute) => minute < 300), 600 * MINUTE, 900 * MINUTE],
    ],
    ['with bursts', every(0.1, (minute) => minute % 200 < 3)],
    ['with one row', [5 * HOUR]],
  ])('not %s', (_, times) => {
    expect(silences(times)).toEqual([]);
  });

  it('never by chance', () => {
    const random = randoms(38);
    for (let day = 0; day < 1000; day += 1) {
      const rows = 1 + Math.floor(random() ** 4 * 3000);
      expect(silences(Array.from({ length: rows }, () => Math.floor(random() * DAY)))).toEqual([]);
    }
  });
});
