/** The figures and texts that the script of the page of `cryptodl report` makes. */
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';

const sources = ['dom.js', 'charts.js', 'heat-map.js', 'coverage.js'].map((name) =>
  readFileSync(new URL(`../../../assets/report/${name}`, import.meta.url), 'utf8'),
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
});
