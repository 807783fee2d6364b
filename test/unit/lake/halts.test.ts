/** Known halts from config/halts.json. */
import { describe, expect, it } from 'vitest';
import { klinesLine } from '../../../scripts/synthetic-lake.js';
import { statesOf } from '../../../src/lake/catalogue/day-states.js';
import type { Gap } from '../../../src/lake/catalogue/gap.js';
import { applyLine, emptyManifest } from '../../../src/lake/manifest.js';
import type { ManifestLine } from '../../../src/model/manifest-line.js';
import { dayText } from '../../../src/model/calendar.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { readFacts } from '../../../src/exchange/facts.js';
import { findDataset } from '../../../src/exchange/exchange-spec.js';

const DAY = 86_400;
const HOUR = 3600;
const FIRST = 20_000;
const VENUE = loadBinance();

const klines = (day: number, differences: object = {}): object =>
  klinesLine('BTCUSDT', dayText(day), { rows: 24, ...differences });

/** A day of ticks with rows from one hour to another. */
const ticks = (day: number, from = 0, to = 24): object =>
  klines(day, { rows: 5000, first: instant(day, from), last: instant(day, to) });

function instant(day: number, hour: number): string {
  return new Date((day * DAY + hour * HOUR) * 1000).toISOString();
}

function gapsOf(lines: readonly object[], halts: readonly number[], dataset = 'klines'): readonly Gap[] {
  const manifest = emptyManifest();
  for (const line of lines) applyLine(manifest, line as ManifestLine);
  const series = {
    market: 'um',
    dataset,
    symbol: 'BTCUSDT',
    ...(dataset === 'klines' ? { interval: '1h' } : {}),
  };
  const spec = findDataset(VENUE, 'um', dataset);
  const read = { manifest, revisions: {}, dropped: {}, missingFiles: new Set<string>() };
  const [states] = statesOf(series, read, { range: {}, today: FIRST + 99, failures: [], spec, halts });
  return states?.gaps ?? [];
}

/** Hours since the first day, and the reason. `from`, `to`: of the halt, in seconds since the first day. */
function reasonsOf(
  lines: readonly object[],
  [from, to]: readonly [number, number],
  dataset?: string,
): unknown[] {
  const gaps = gapsOf(lines, [FIRST * DAY + from, FIRST * DAY + to], dataset);
  return gaps.map((gap) => [
    (gap.fromSeconds - FIRST * DAY) / HOUR,
    (gap.toSeconds - FIRST * DAY) / HOUR,
    gap.reason,
  ]);
}

describe('a known halt', () => {
  const around = [-3, -2, -1, 1, 2, 3].map((day) => ticks(FIRST + day));

  it('explains a day of ticks that it cuts, and no other day', () => {
    const cut = [...around, ticks(FIRST, 0, 7)];
    expect(reasonsOf(cut, [7 * HOUR, 23 * HOUR], 'aggTrades')).toEqual([]);
    expect(reasonsOf(cut, [7 * HOUR, 21 * HOUR], 'aggTrades')).toEqual([[7, 24, 'cut']]);
  });

  it('does not explain a day that is cut at both ends, which counts as one day', () => {
    const gaps = gapsOf([...around, ticks(FIRST, 9, 15)], [], 'aggTrades');
    expect(gaps.map(({ reason }) => reason)).toEqual(['cut', 'cut']);
    expect(gaps.reduce((sum, { amount }) => sum + amount, 0)).toBe(1);
  });

  it('explains the rows that it overlaps, and no others', () => {
    const lines = [
      klines(FIRST - 1),
      klines(FIRST, { rows: 18, gaps: [[instant(FIRST, 0), instant(FIRST, 6)]] }),
    ];
    expect(reasonsOf(lines, [HOUR + 600, 2 * HOUR + 60])).toEqual([
      [0, 1, 'unexplained'],
      [1, 3, 'halt'],
      [3, 6, 'unexplained'],
    ]);
  });

  it('explains a day without a file when it lasted the whole day', () => {
    expect(reasonsOf([klines(FIRST - 1), klines(FIRST + 3)], [DAY - 1, 2 * DAY + 60])).toEqual([
      [0, 24, 'unexplained'],
      [24, 48, 'halt'],
      [48, 72, 'unexplained'],
    ]);
  });

  it('does not replace a recorded reason', () => {
    const [first, last] = [dayText(FIRST), dayText(FIRST)];
    const asked = { asked: 1, at: '2024-10-09T00:00:00Z', tool: 'test' };
    const failed = { first: dayText(FIRST - 1), last: dayText(FIRST - 1), failed: 'zip-broken' };
    const absent = {
      v: 1,
      kind: 'absent',
      cadence: 'daily',
      first,
      last,
      reason: 'not-listed-yet',
      ...asked,
    };
    const lines = [klines(FIRST + 1), absent, { ...absent, ...failed }];
    expect(reasonsOf(lines, [0, DAY]).at(-1)).toEqual([0, 24, 'not-listed-yet']);
  });
});

describe('config/halts.json', () => {
  const line = { market: 'spot', from: '2024-01-01T03:00:00Z', to: '2024-01-01T04:00:00Z', source: 'a page' };

  it('is read', () => {
    expect(readFacts('halts.json', [line])).toEqual([
      { ...line, datasets: ['klines', 'trades', 'aggTrades'] },
    ]);
  });

  it('has the maintenance of the spot market with sources, in order', () => {
    const halts = readFacts('halts.json');
    expect(halts.length).toBeGreaterThan(20);
    expect(halts.every(({ source }) => source.startsWith('https://'))).toBe(true);
    const times = halts.flatMap(({ from, to }) => [Date.parse(from), Date.parse(to)]);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    const [from, to] = ['2019-05-15T03:00:00Z', '2019-05-15T13:00:00Z'].map(
      (text) => Date.parse(text) / 1000,
    );
    const day = Math.floor((from ?? 0) / DAY);
    const known = halts.flatMap((halt) => [Date.parse(halt.from) / 1000, Date.parse(halt.to) / 1000]);
    const gaps = [[from, to].map((second = 0) => new Date(second * 1000).toISOString())];
    const lines = [klines(day, { rows: 14, gaps })];
    expect(gapsOf(lines, known).map(({ reason }) => reason)).toEqual(['halt']);
  });

  it.each([
    ['no source', { ...line, source: '' }],
    ['an end before its beginning', { ...line, to: '2024-01-01T02:00:00Z' }],
    ['a time that is not UTC', { ...line, from: '2024-01-01T03:00:00+09:00' }],
    ['a key too many', { ...line, symbol: 'BTCUSDT' }],
  ])('is refused when it has %s', (_, wrong) => {
    expect(() => readFacts('halts.json', [wrong])).toThrow(
      /^config\/halts\.json: 0.*(?:Invalid|not UTC|ends before)/,
    );
  });
});
