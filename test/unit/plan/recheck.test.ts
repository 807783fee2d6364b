import { describe, expect, it } from 'vitest';
import { dayText, parseDay } from '../../../src/model/calendar.js';
import { DAY_MS } from '../../../src/model/units.js';
import { Absences } from '../../../src/lake/absences.js';
import type { AbsentLine, ObjectLine } from '../../../src/model/manifest-line.js';
import { HeldObjects } from '../../../src/lake/held-objects.js';
import { withRecheckedDays, withLackingDays } from '../../../src/plan/ranges-to-plan.js';
import { objectLine } from '../../helpers/conversion.js';

const day = (text: string): number => parseDay(text) ?? Number.NaN;
const TODAY = day('2026-11-20');

interface Given {
  /**
   * Those that end in `*` came from REST because the archive did not answer, those in `+` from REST alone; of those in `?`, the missing
   * days were not requested yet.
   */
  readonly held?: readonly string[];
  readonly absent?: readonly Partial<AbsentLine>[];
  readonly revisions?: 'check' | 'ignore' | 'only';
  readonly recheckDays?: number;
  readonly asked?: readonly [string, string];
}

const MARKED: Readonly<Record<string, Partial<ObjectLine>>> = {
  '*': { verified: 'rest', archiveFailed: 'http-server-error' },
  '+': { verified: 'rest' },
  '?': { daysPending: true },
};

/** The days that are looked at for somebody who asks for yesterday, as first … last. */
function lookedAt({
  held: labels = [],
  absent = [],
  revisions = 'check',
  recheckDays = 7,
  asked = ['2026-11-19', '2026-11-19'],
}: Given): string[] {
  const held = new HeldObjects();
  for (const label of labels) {
    const [mark = ''] = label.match(/[*+?]$/) ?? [];
    held.add(objectLine(label.replace(mark, ''), MARKED[mark]));
  }
  const absences = new Absences();
  const line = { v: 1, kind: 'absent', cadence: 'daily', asked: 1, tool: 'test' } as const;
  const at = '2026-11-15T00:00:00Z';
  for (const { first = '', last = first, reason = 'hole', ...more } of absent)
    absences.add({ ...line, first, last, reason, at, ...more });
  const context = { today: TODAY, nowMs: TODAY * DAY_MS, revisions, recheckDays };
  const ranges = [{ from: day(asked[0]), to: day(asked[1]) + 1 }];
  return withRecheckedDays(context, ranges, held, absences).map(
    ({ from, to }) => `${dayText(from ?? 0)} ${dayText(to - 1)}`,
  );
}

describe('days that are checked again', () => {
  it('are the last held days before a pause of runs, for a year', () => {
    expect(lookedAt({})).toEqual(['2026-11-19 2026-11-19']);
    expect(lookedAt({ held: ['2026-10-25', '2026-10-26', '2026-11-01'] })).toEqual([
      '2026-10-26 2026-10-26',
      '2026-11-01 2026-11-01',
      '2026-11-19 2026-11-19',
    ]);
    expect(lookedAt({ held: ['2025-10-10'] })).toEqual(['2026-11-19 2026-11-19']);
  });

  it('are the recent days that are held, and those behind them of which nothing is known', () => {
    expect(lookedAt({ held: ['2026-11-01', '2026-11-15'] })).toEqual(['2026-11-15 2026-11-19']);
    expect(lookedAt({ held: ['2026-11-15'], absent: [{ first: '2026-11-17', reason: 'delisted' }] })).toEqual(
      ['2026-11-15 2026-11-16', '2026-11-18 2026-11-19'],
    );
  });

  it('are none after the end of the range that are not held', () => {
    const absent = [{ first: '2026-11-17', at: '2026-11-05T00:00:00Z' }];
    const asked = ['2026-11-14', '2026-11-15'] as const;
    expect(lookedAt({ held: ['2026-11-15', '2026-11-18'], absent, asked })).toEqual([
      '2026-11-14 2026-11-15',
      '2026-11-18 2026-11-18',
    ]);
  });

  it('are days from REST in place of the archive, however old', () => {
    expect(lookedAt({ held: ['2026-09-03*', '2026-09-04', '2026-11-19'] })).toEqual([
      '2026-09-03 2026-09-03',
      '2026-11-19 2026-11-19',
    ]);
  });

  it('are not recent days from REST that substitute nothing', () => {
    expect(lookedAt({ held: ['2026-11-15+', '2026-11-16'] })).toEqual(['2026-11-16 2026-11-19']);
  });

  it('are months whose missing days were not requested yet, however old', () => {
    expect(lookedAt({ held: ['2026-08', '2026-09?'] })).toEqual([
      '2026-09-01 2026-09-30',
      '2026-11-19 2026-11-19',
    ]);
  });

  it('begin exactly so many days before today', () => {
    expect(lookedAt({ held: ['2026-11-12', '2026-11-13', '2026-11-19'] })).toEqual(['2026-11-13 2026-11-19']);
    expect(lookedAt({ held: ['2026-11-12', '2026-11-19'] })).toEqual(['2026-11-19 2026-11-19']);
  });

  it('end before today, also in a month that is not over', () => {
    expect(lookedAt({ held: ['2026-11'] })).toEqual(['2026-11-01 2026-11-19']);
  });

  it('is a whole month where a month is held', () => {
    expect(lookedAt({ held: ['2026-10'], recheckDays: 25 })).toEqual(['2026-10-01 2026-11-19']);
  });

  it('are late days that are due, however old', () => {
    const absent = [
      { first: '2026-08-01', last: '2026-08-02', at: '2026-11-05T00:00:00Z' },
      { first: '2026-08-03' },
      { first: '2026-08-04', reason: 'delisted' as const },
      { first: '2026-08-05', reason: 'not-published-yet' as const, at: '2026-11-05T00:00:00Z' },
      { first: '2026-06', cadence: 'monthly' as const, at: '2026-11-01T00:00:00Z' },
    ];
    const late = ['2026-06-01 2026-06-30', '2026-08-01 2026-08-02', '2026-08-05 2026-08-05'];
    expect(lookedAt({ absent })).toEqual([...late, '2026-11-19 2026-11-19']);
    expect(lookedAt({ absent, revisions: 'ignore' })).toEqual([...late, '2026-11-19 2026-11-19']);
    expect(lookedAt({ absent, held: ['2026-08-01', '2026-11-19'] })).toContain('2026-08-02 2026-08-02');
    expect(lookedAt({ absent, held: ['2026-06', '2026-11-19'] })).not.toContain('2026-06-01 2026-06-30');
  });

  it('are none if the range has only old days, or if checks are switched off', () => {
    const held = ['2026-11-15'];
    expect(lookedAt({ held, asked: ['2026-01-01', '2026-01-31'] })).toEqual(['2026-01-01 2026-01-31']);
    expect(lookedAt({ held, recheckDays: 0 })).toEqual(['2026-11-19 2026-11-19']);
    expect(lookedAt({ held: ['2026-11-18'], revisions: 'ignore' })).toEqual(['2026-11-19 2026-11-19']);
  });
});

describe('the days that an order lacks', () => {
  /** The days that are added to yesterday, since 2026-11-01. `fifth`: the manifest line of the fifth day differs in this. */
  function lacking({
    held: labels,
    fifth = {},
    absent = [],
    today = TODAY,
    isArchived = true,
  }: {
    readonly held: readonly string[];
    readonly fifth?: Partial<ObjectLine>;
    readonly absent?: readonly Partial<AbsentLine>[];
    readonly today?: number;
    readonly isArchived?: boolean;
  }): string[] {
    const held = new HeldObjects();
    for (const label of labels) held.add(objectLine(label, label === '2026-11-05' ? fifth : {}));
    const absences = new Absences();
    const line = { v: 1, kind: 'absent', cadence: 'daily', asked: 9, tool: 'test' } as const;
    for (const { first = '', last = first, reason = 'hole', ...more } of absent)
      absences.add({ ...line, first, last, reason, at: '2026-11-19T12:00:00Z', ...more });
    const context = { today, nowMs: today * DAY_MS, revisions: 'check' as const };
    const asked = [{ from: today - 1, to: today }];
    const known = { held, absences, cuts: new Set<number>(), isArchived };
    const found = withLackingDays(context, asked, day('2026-11-01'), known);
    return found.map(({ from, to }) => `${dayText(from).slice(8)}-${dayText(to - 1).slice(8)}`);
  }
  const ALL = Array.from({ length: 19 }, (_, index) => dayText(day('2026-11-01') + index));
  const without = (...days: readonly string[]): string[] =>
    ALL.filter((label) => !days.includes(label.slice(8)));

  it.each([
    ['none of a whole lake', { held: ALL }, ['19-19']],
    [
      'before, between and after the held ones',
      { held: without('01', '02', '09', '18') },
      ['01-02', '09-09', '18-19'],
    ],
    [
      'not those that were asked for recently',
      { held: without('09'), absent: [{ first: '2026-11-09' }] },
      ['19-19'],
    ],
    [
      'those whose wait is over',
      { held: without('09'), absent: [{ first: '2026-11-09', at: '2026-10-01T00:00:00Z' }] },
      ['09-09', '19-19'],
    ],
    [
      'late days before a day that has arrived',
      { held: without('09'), absent: [{ first: '2026-11-09', reason: 'not-published-yet' as const }] },
      ['09-09', '19-19'],
    ],
    [
      'days that a later day shows to be no end',
      { held: without('09'), absent: [{ first: '2026-11-09', reason: 'delisted' as const }] },
      ['09-09', '19-19'],
    ],
    [
      'not the days after a recent end',
      { held: ALL.slice(0, 8), absent: [{ first: '2026-11-09', reason: 'delisted' as const }] },
      ['19-19'],
    ],
  ] as const)('are %s', (_, given, days) => {
    expect(lacking(given)).toEqual(days);
  });

  it.each([
    ['lack rows', { gaps: [['2026-11-05T00:00:00Z', '2026-11-05T01:00:00Z']] }],
    ['are from REST in place of the archive', { verified: 'rest' }],
  ] as const)(
    '%s: each run compares their entry in the listing, after a year less and less often, without end',
    (_name, fifth) => {
      const checks = (age: number, days: number): number =>
        Array.from({ length: days }, (_, index) => day('2026-11-05') + age + index).filter((today) =>
          lacking({ held: ALL, fifth, today }).includes('05-05'),
        ).length;
      expect([checks(3, 4), checks(40, 30), checks(300, 60), checks(900, 60)]).toEqual([4, 30, 60, 2]);
    },
  );

  it('are no days of a dataset that only REST has', () => {
    expect(lacking({ held: ALL, fifth: { verified: 'rest' }, isArchived: false })).toEqual(['19-19']);
  });
});
