import { describe, expect, it } from 'vitest';
import { heatMap } from '../../../src/verbs/coverage/print-coverage.js';

describe('the heat-map of coverage', () => {
  const COMPLETE = { expected: 24, missing: 0 };
  const row = (label: string, days: number) => ({
    label,
    from: 20_000,
    periods: Array.from({ length: days }, () => COMPLETE),
    percent: '100 %',
  });

  it.each([60, 80, 120])('of long names and many days fits %i columns', (width) => {
    const rows = [row('1000000MOGUSDT_260925 and a long name (csv)', 90), row('BTCUSDT', 90)];
    const lines = heatMap(rows, { by: 'day', width, hasColour: false });
    expect(lines.filter((line) => line.length > width)).toEqual([]);
    expect(lines[1]).toMatch(/^1000000MOGUSDT_260925 a…  █+ {2}100 %$/);
  });
});
