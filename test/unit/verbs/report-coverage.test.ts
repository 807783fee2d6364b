/** The coverage of a lake in the page of `cryptodl report`. */
import { describe, expect, it } from 'vitest';
import { DAY_SECONDS } from '../../../src/model/units.js';
import type { SeriesStates } from '../../../src/lake/catalogue/day-states.js';
import type { Gap } from '../../../src/lake/catalogue/gap.js';
import { coverageElements } from '../../../src/verbs/report/coverage-elements.js';

interface Group {
  readonly name: string;
  readonly unit: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly states: readonly unknown[];
  readonly gaps: readonly { readonly span: string }[];
  readonly moreGaps: number;
}

function seriesOf(
  symbol: string,
  interval: string | undefined,
  gaps: readonly Gap[] = [],
  changes: Partial<SeriesStates> = {},
): SeriesStates {
  const rowSeconds = interval === undefined ? undefined : 60;
  const series = { market: 'um', dataset: interval === undefined ? 'trades' : 'klines', interval, symbol };
  const days = { from: 10, to: 400, dayStartSeconds: 0, rowSeconds };
  const amounts = { objects: 7, revisions: 2, expected: 1000, missing: 10, excused: 0 };
  return { series, format: 'parquet', ...days, ...amounts, gaps, ...changes } as unknown as SeriesStates;
}

/** A missing minute on each of so many days. */
function minutes(count: number): Gap[] {
  return Array.from({ length: count }, (_, index) => {
    const fromSeconds = (11 + index) * DAY_SECONDS + 3600;
    const toSeconds = fromSeconds + 60;
    return { fromSeconds, toSeconds, state: 'short', reason: 'unexplained', amount: 1, isMissing: true };
  });
}

async function groupsOf(covered: readonly SeriesStates[]): Promise<Group[]> {
  const each = async function* (): AsyncGenerator<SeriesStates> {
    for (const one of covered) yield await Promise.resolve(one);
  };
  let text = '';
  for await (const part of coverageElements(each())) text += part;
  const elements = [
    ...text.matchAll(/<script type="application\/json" data-kind="group">(.*?)<\/script>\n/g),
  ];
  expect(elements.map(([element]) => element).join('')).toBe(text);
  return elements.map(([, json = '']) => JSON.parse(json) as Group);
}

describe('the coverage in a page', () => {
  it('has a group for each dataset and interval, with its own unit, states and gaps', async () => {
    const groups = await groupsOf([
      seriesOf('BTCUSDT', '1m', minutes(2)),
      seriesOf('ETHUSDT', '1m'),
      seriesOf('BTCUSDT', undefined),
    ]);
    expect(
      groups.map(({ name, unit, rows, gaps }) => [name, unit, rows.map(({ s }) => s), gaps.length]),
    ).toEqual([
      ['um klines 1m', 'rows', ['BTCUSDT', 'ETHUSDT'], 2],
      ['um trades', 'days', ['BTCUSDT'], 0],
    ]);
    expect(groups.map(({ states }) => states)).toEqual([
      [
        [100, null],
        [99, 'unexplained'],
      ],
      [[100, null]],
    ]);
    expect(await groupsOf([])).toEqual([]);
  });

  it('has the figures of each series, also without rows or days', async () => {
    const times = { firstInstant: '2026-01-01T00:00:00.000Z', lastInstant: '2026-02-01T00:00:00.000Z' };
    const nothing = { from: Infinity, to: -Infinity, format: undefined };
    const [group] = await groupsOf([
      seriesOf('BTCUSDT', '1m', [], { ...times, format: 'csv' }),
      seriesOf('NONEUSDT', '1m', [], nothing),
    ]);
    expect(group?.rows).toEqual([
      {
        s: 'BTCUSDT (csv)',
        p: '99.00 %',
        e: 1000,
        m: 10,
        o: 7,
        v: 2,
        f: times.firstInstant,
        l: times.lastInstant,
        d: 10,
        r: 'A390',
      },
      { s: 'NONEUSDT', p: '99.00 %', e: 1000, m: 10, o: 7, v: 2, f: null, l: null, d: 0, r: '' },
    ]);
  });

  it('has two hundred gaps of a group, and counts the others', async () => {
    const [group] = await groupsOf([seriesOf('BTCUSDT', '1m', minutes(203))]);
    expect([group?.gaps.length, group?.moreGaps]).toEqual([200, 3]);
    expect(group?.gaps[0]).toEqual({
      span: expect.any(String),
      symbols: 'BTCUSDT',
      missing: '1 row',
      reason: 'unexplained',
      series: 1,
    });
  });
});
