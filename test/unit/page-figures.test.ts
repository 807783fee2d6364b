/** The figures and texts that the script of the page of `cryptodl report` makes. */
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';

const sources = ['dom.js', 'charts.js', 'heat-map.js', 'coverage.js'].map((name) =>
  readFileSync(new URL(`../../assets/report/${name}`, import.meta.url), 'utf8'),
);

interface Script {
  readonly bytesText: (bytes: number) => string;
  readonly durationText: (ms: number) => string;
  readonly percentText: (share: number, whole: number) => string;
  readonly clockText: (seconds: number) => string;
  readonly percentileOf: (counts: number[], bounds: number[], share: number) => number | null;
  readonly firstLacking: (groups: { rows: { m: number }[] }[]) => number;
  readonly cellText: (group: object, row: object, day: number) => string;
}

const NAMES = 'bytesText, durationText, percentText, clockText, percentileOf, firstLacking, cellText';
const script = runInNewContext(`${sources.join('\n')}\n({ ${NAMES} })`) as Script;

describe('the script of a report', () => {
  it.each([
    [0.5, 0.15],
    [0.75, 0.175],
    [1, 0.2],
  ])('finds the share %f of latencies within its bucket', (share, seconds) => {
    expect(script.percentileOf([0, 4, 0, 0], [0.1, 0.2, 0.5], share)).toBeCloseTo(seconds, 9);
  });

  it('finds a latency among several buckets, none without attempts, and the last bound beyond it', () => {
    expect(script.percentileOf([5, 0, 5, 0], [0.1, 0.2, 0.5], 0.9)).toBeCloseTo(0.44, 9);
    expect(script.percentileOf([0, 0], [0.1], 0.5)).toBeNull();
    expect(script.percentileOf([0, 3], [0.1], 0.5)).toBe(0.1);
  });

  it('shows first the coverage of a group with gaps, if there is one', () => {
    const groupsOf = (...missing: number[][]) => missing.map((rows) => ({ rows: rows.map((m) => ({ m })) }));
    expect(script.firstLacking(groupsOf([0], [0, 3], [5]))).toBe(1);
    expect(script.firstLacking(groupsOf([0], [0]))).toBe(0);
  });

  it('writes sizes, durations, shares and times', () => {
    expect([0, 999, 1000, 9949, 12_345, 999_600, 7.1e8].map(script.bytesText)).toEqual([
      '0 B',
      '999 B',
      '1 kB',
      '9.9 kB',
      '12 kB',
      '1 MB',
      '710 MB',
    ]);
    expect([0, 999, 1500, 119_000, 120_000, 7_260_000, 300_000_000].map(script.durationText)).toEqual([
      '0 ms',
      '999 ms',
      '1.5 s',
      '119.0 s',
      '2 min',
      '2 h 1 min',
      '3 days',
    ]);
    expect([script.percentText(1, 8), script.percentText(0, 0)]).toEqual(['12.5 %', '–']);
    expect([5, 65, 3600, 3725].map(script.clockText)).toEqual(['0:05', '1:05', '1:00:00', '1:02:05']);
  });

  it('names the state of a day of the heat-map', () => {
    const states = [
      [null, 'not-listed-yet'],
      [100, null],
      [75, 'hole'],
      [0, 'hole'],
    ];
    const row = { s: 'BTCUSDT', d: 19_723, r: 'A2BCD' };
    const texts = [-1, 0, 1, 2, 3, 4, 5].map((day) =>
      script.cellText({ states, unit: 'rows' }, row, row.d + day),
    );
    expect(texts).toEqual([
      'BTCUSDT, 2023-12-31: outside of the days of the series',
      'BTCUSDT, 2024-01-01: no data expected, not-listed-yet',
      'BTCUSDT, 2024-01-02: no data expected, not-listed-yet',
      'BTCUSDT, 2024-01-03: complete',
      'BTCUSDT, 2024-01-04: 75 % of the rows, hole',
      'BTCUSDT, 2024-01-05: 0 % of the rows, hole',
      'BTCUSDT, 2024-01-06: outside of the days of the series',
    ]);
    expect(script.cellText({ states, unit: 'days' }, row, row.d + 4)).toBe(
      'BTCUSDT, 2024-01-05: missing, hole',
    );
  });
});
