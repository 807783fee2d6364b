/** The range that coverage checks, and the formats and failures that it counts. */
import { describe, expect, it } from 'vitest';
import { klinesLine, SETTINGS } from '../../../scripts/synthetic-lake.js';
import { statesOf } from '../../../src/lake/catalogue/day-states.js';
import { DAY_SECONDS } from '../../../src/model/units.js';
import type { SeriesRead, SeriesStates, StateTerms } from '../../../src/lake/catalogue/day-states.js';
import { applyLine, emptyManifest } from '../../../src/lake/manifest.js';
import type { ManifestLine } from '../../../src/model/manifest-line.js';
import { dayText } from '../../../src/model/calendar.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import type { Format } from '../../../src/model/task.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { findDataset } from '../../../src/exchange/exchange-spec.js';
import type { DatasetSpec } from '../../../src/exchange/exchange-spec.js';
import { day } from '../../helpers/conversion.js';

const VENUE = loadBinance();
const SERIES = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' } as const;
const FUNDING = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' } as const;
type Context = Omit<SeriesRead, 'manifest'> & StateTerms;
const CONTEXT: Context = {
  range: {},
  today: day('2024-01-20'),
  dropped: {},
  missingFiles: new Set(),
  failures: [],
  spec: findDataset(VENUE, 'um', 'klines'),
  revisions: {},
  halts: [],
};

const line = (of: string, differences: Record<string, unknown> = {}): object =>
  klinesLine('BTCUSDT', of, differences);

function absent(first: string, last: string, reason: string, more: object = {}): object {
  const at = '2024-01-11T00:00:00.000Z';
  const cadence = first.length === 7 ? 'monthly' : 'daily';
  return { v: 1, kind: 'absent', cadence, first, last, reason, asked: 1, at, tool: 'test', ...more };
}

function failure(of: string, format: Format = 'parquet'): Context['failures'][number] {
  const code: ErrorCode = 'connect-failed';
  return { format, code, period: { from: day(of), to: day(of) + 1 } };
}

function cover(
  lines: readonly object[],
  context: Partial<Context> = {},
  series: Parameters<typeof statesOf>[0] = SERIES,
): SeriesStates[] {
  const manifest = emptyManifest();
  for (const one of lines) applyLine(manifest, one as ManifestLine);
  const terms = { ...CONTEXT, ...context };
  return statesOf(series, { ...terms, manifest }, terms);
}

/** First and last day of each range, and the absent days with their reasons. */
function daysOf(covered: readonly SeriesStates[]): unknown[] {
  return covered.map(({ from, to, gaps }) => [
    `${dayText(from)} ${to === from ? '-' : dayText(to - 1)}`,
    ...gaps.map(
      (gap) =>
        `${dayText(gap.fromSeconds / DAY_SECONDS)} ${(gap.toSeconds - gap.fromSeconds) / DAY_SECONDS} ${gap.reason}`,
    ),
  ]);
}

describe('the range without flags', () => {
  it('ends before today, whose data is not complete', () => {
    const today = day('2024-01-08');
    const held = [line('2024-01-07'), line('2024-01-08', { open: true, verified: 'rest' })];
    expect(daysOf(cover(held, { today }))).toEqual([['2024-01-07 2024-01-07']]);
    expect(daysOf(cover(held.slice(1), { today }))).toEqual([['2024-01-08 -']]);
  });

  it('ends before this month for a dataset that is published by month', () => {
    const key = 'data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-2023-12.zip';
    const month = { key, cadence: 'monthly', period: '2023-12', rows: 93 };
    const spec = findDataset(VENUE, 'um', 'fundingRate');
    const lines = [
      line('2023-12-01', month),
      absent('2024-01', '2024-01', 'not-published-yet', { failed: 'x' }),
    ];
    expect(daysOf(cover(lines, { spec }, FUNDING))).toEqual([['2023-12-01 2023-12-31']]);
  });
});

describe('a given range', () => {
  const held = [line('2024-01-05'), line('2024-01-06')];

  it('wins over the own days, and may include today', () => {
    const range = { from: day('2024-01-04'), to: day('2024-01-08') };
    expect(daysOf(cover(held, { range, today: day('2024-01-06') }))).toEqual([
      ['2024-01-04 2024-01-07', '2024-01-04 1 not-fetched', '2024-01-07 1 not-fetched'],
    ]);
  });

  it('counts the objects that it overlaps', () => {
    const three = [...held, line('2024-01-07')];
    const range = { from: day('2024-01-06'), to: day('2024-01-07') };
    expect(cover(three, { range })[0]).toMatchObject({ objects: 1, rows: 1440 });
    expect(cover(three)[0]).toMatchObject({ objects: 3, rows: 3 * 1440 });
  });

  it('that ends before a series begins is empty', () => {
    const [covered] = cover(held, { range: { to: day('2024-01-02') } });
    expect(covered).toMatchObject({ from: day('2024-01-05'), to: day('2024-01-05'), gaps: [], objects: 0 });
  });

  it('that begins after a series ends is not fetched', () => {
    const range = { from: day('2024-01-08'), to: day('2024-01-10') };
    expect(daysOf(cover(held, { range }))).toEqual([['2024-01-08 2024-01-09', '2024-01-08 2 not-fetched']]);
    expect(daysOf(cover(held, { range: { from: day('2024-01-08') } }))).toEqual([['2024-01-08 -']]);
  });
});

it('an object may lack more rows than its gaps name', () => {
  const gaps = [['2024-01-10T03:05:00.000Z', '2024-01-10T03:06:00.000Z']];
  expect(cover([line('2024-01-10', { rows: 1437, gaps })])[0]).toMatchObject({ expected: 1440, missing: 3 });
});

describe('a series with remembered absences alone', () => {
  it('counts their days, without a format and by day', () => {
    const [covered, ...more] = cover([
      absent('2024-01-03', '2024-01-04', 'hole'),
      absent('2024-01-05', '2024-01-05', 'dataset-ended'),
    ]);
    expect(more).toEqual([]);
    expect(covered).toMatchObject({ format: undefined, rowSeconds: undefined });
    expect(covered).toMatchObject({
      objects: 0,
      rows: undefined,
      revisions: 0,
      own: { from: day('2024-01-03') },
    });
    expect(daysOf([covered as SeriesStates])).toEqual([
      ['2024-01-03 2024-01-05', '2024-01-03 2 hole', '2024-01-05 1 dataset-ended'],
    ]);
  });

  it('counts failed fetches alone, if it has any', () => {
    const failed = absent('2024-01-06', '2024-01-06', 'hole', { failed: 'zip-broken' });
    expect(daysOf(cover([absent('2024-01-03', '2024-01-03', 'hole'), failed]))).toEqual([
      ['2024-01-06 2024-01-06', '2024-01-06 1 failed:zip-broken'],
    ]);
    expect(daysOf(cover([failed]))).toHaveLength(1);
  });

  it('is left out if it remembers nothing, or if it had objects', () => {
    expect(cover([])).toEqual([]);
    const { key } = klinesLine('BTCUSDT', '2024-01-05');
    const dropped = { v: 1, kind: 'dropped', key, format: 'parquet', at: '2024-01-06T00:00:00Z' };
    expect(cover([line('2024-01-05'), dropped])).toEqual([]);
  });
});

it('a day of trades that ends or begins with a pause of the symbol is not cut', () => {
  const trades = { market: 'um', dataset: 'trades', symbol: 'BTCUSDT' } as const;
  const spec = findDataset(VENUE, 'um', 'trades');
  const held = (of: string, first = '00:00:10', last = '23:59:50'): object =>
    line(of, { rows: 5000, first: `${of}T${first}.000Z`, last: `${of}T${last}.000Z` });
  const before = ['2024-01-02', '2024-01-03', '2024-01-04'].map((of) => held(of));
  const after = ['2024-01-09', '2024-01-10', '2024-01-11'].map((of) => held(of));
  const edges = [held('2024-01-05', '00:00:10', '12:00:00'), held('2024-01-08', '12:00:00')];
  const lines = [...before, ...edges, ...after];
  const lacking = (more: readonly object[]): unknown =>
    cover([...lines, ...more], { spec }, trades)[0]?.missing;
  expect(lacking([absent('2024-01-06', '2024-01-07', 'not-traded')])).toBe(0);
  expect(lacking([absent('2024-01-06', '2024-01-07', 'hole')])).toBe(4);
});

describe('a symbol that is listed or delisted within a month', () => {
  const MONTH = { cadence: 'monthly', rows: 9, ids: { first: 1, last: 2 } };
  const tenth = '2024-01-10T00:00:00Z';
  const late = line('2024-01', { ...MONTH, first: tenth, gaps: [['2024-01-01T00:00:00Z', tenth]] });
  const early = line('2024-01', { ...MONTH, last: tenth, gaps: [[tenth, '2024-02-01T00:00:00Z']] });
  const rest = { asked: 1, at: '2024-02-12T00:00:00.000Z' };
  const ofMonth = absent('2024-01', '2024-01', 'hole', { at: rest.at, rest });
  const whileLate = absent('2024-01-01', '2024-01-09', 'not-published-yet', {
    rest: { ...rest, isEmpty: true },
  });
  const notListed = absent('2024-01-09', '2024-01-09', 'not-listed-yet');

  it.each([
    ['before its first row', [late, notListed, ofMonth], 0],
    ['before its first row, and was while the month was late', [late, whileLate, notListed], 0],
    ['before its first row, without evidence', [late, ofMonth], 9],
    ['after its last row', [early, absent('2024-01-11', '2024-01-11', 'delisted'), ofMonth], 0],
    ['after its last row, without evidence', [early, ofMonth], 22],
  ])('lacks nothing but days without evidence if REST is asked for the time %s', (_, lines, missing) => {
    const spec = findDataset(VENUE, 'um', 'fundingRate');
    expect(cover(lines, { spec, today: day('2024-02-13') }, FUNDING)).toMatchObject([{ missing }]);
  });
});

describe('an answer of REST', () => {
  const gaps = [['2024-01-06T03:00:00Z', '2024-01-06T03:10:00Z']];
  const held = [line('2024-01-05'), line('2024-01-06', { rows: 1430, gaps }), line('2024-01-09')];
  const { sha256 } = klinesLine('BTCUSDT', '2024-01-06');
  const asked = (of: string, answer: object): object =>
    absent(of, of, 'hole', { rest: { asked: 1, at: '2024-01-11T00:00:00.000Z', ...answer } });
  const reasonsOf = (lines: readonly object[], context: Partial<Context> = {}): unknown[] =>
    cover(lines, context).flatMap((covered) =>
      covered.gaps.map(({ reason, evidence }) => `${reason} ${evidence ?? '-'}`),
    );
  const both = [...held, asked('2024-01-06', { lacksToo: sha256 }), asked('2024-01-08', { isEmpty: true })];

  it('proves that there are no rows of a hole between held days, and of the gaps of the held revision', () => {
    expect(reasonsOf(both)).toEqual(['halt rest', 'unexplained -', 'not-traded rest']);
  });

  it('proves nothing about another revision, after a refused or early request, or without the whole history', () => {
    const lost = ['unexplained -', 'unexplained -', 'hole -'];
    const other = asked('2024-01-06', { lacksToo: '1'.repeat(64) });
    expect(reasonsOf([...held, other, asked('2024-01-08', {})])).toEqual(lost);
    const early = { isEmpty: true, at: '2024-01-09T23:00:00.000Z' };
    expect(reasonsOf([...held, other, asked('2024-01-08', early)])).toEqual(lost);
    const spec = { ...findDataset(VENUE, 'um', 'metrics'), rowSeconds: 60 } as DatasetSpec;
    expect(reasonsOf(both, { spec })).toEqual(lost);
  });

  it('proves that rows are in neither, where rows of REST replace those of the archive', () => {
    const insteadOf = { bytes: 1, sha256, at: '2024-01-07T00:00:00Z', rows: 1420, gaps };
    const late = ['2024-01-06T04:00:00Z', '2024-01-06T04:10:00Z'];
    const filled = line('2024-01-06', { rows: 1420, verified: 'rest', insteadOf, gaps: [...gaps, late] });
    expect(reasonsOf([line('2024-01-05'), filled])).toEqual(['halt rest', 'unexplained -']);
  });
});

describe('each format', () => {
  const csv = (of: string): object =>
    line(of, { settings: { ...SETTINGS, format: 'csv' }, file: '2024-01.csv' });

  it('has its own days, failures, lost objects and revisions', () => {
    const covered = cover([line('2024-01-05'), csv('2024-01-08')], {
      failures: [failure('2024-01-09', 'csv'), failure('2024-01-03')],
      dropped: { csv: [{ from: day('2024-01-07'), to: day('2024-01-08') }] },
      revisions: { csv: 3 },
    });
    expect(daysOf(covered)).toEqual([
      ['2024-01-03 2024-01-05', '2024-01-03 1 failed:connect-failed', '2024-01-04 1 not-fetched'],
      ['2024-01-07 2024-01-09', '2024-01-07 1 not-fetched', '2024-01-09 1 failed:connect-failed'],
    ]);
    expect(covered.map(({ format, revisions }) => [format, revisions])).toEqual([
      ['parquet', 0],
      ['csv', 3],
    ]);
  });

  it('is covered if it has lost all of its objects', () => {
    const dropped = { csv: [{ from: day('2024-01-07'), to: day('2024-01-08') }] };
    expect(daysOf(cover([], { dropped }))).toEqual([['2024-01-07 2024-01-07', '2024-01-07 1 not-fetched']]);
  });

  it('of bars that were never made is not judged', () => {
    const range = { from: day('2024-01-05'), to: day('2024-01-08') };
    expect(cover([], { range, spec: findDataset(VENUE, 'um', 'bars') })).toEqual([]);
  });

  it('counts rows, but archive files count days', () => {
    const zip = line('2024-01-05', { settings: { ...SETTINGS, format: 'zip' } });
    expect(cover([line('2024-01-05'), zip]).map(({ rowSeconds }) => rowSeconds)).toEqual([60, undefined]);
    expect(cover([line('2024-01-05')], { spec: undefined })[0]?.rowSeconds).toBeUndefined();
  });
});
