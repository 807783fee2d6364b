/** The steps of the search for the level of concurrency, measurement by measurement. */
import { describe, expect, it } from 'vitest';
import { LevelSearch } from '../../../src/run/pacing/level-search.js';
import type { Step } from '../../../src/run/pacing/level-search.js';

/** Objects per second; their mean time, by default 100 ms; the share of refusals. */
type Row = readonly [perSecond: number, meanMs?: number, refusedShare?: number];
/** A measurement, or something else that happens. */
type Happening = Row | ((search: LevelSearch) => Step);

interface Setting {
  readonly start?: number;
  readonly most?: number;
  readonly growTo?: number;
  readonly isLocal?: boolean;
}

function measure(search: LevelSearch, [perSecond, meanMs = 100, refusedShare = 0]: Row, setting: Setting) {
  const { growTo = Number.POSITIVE_INFINITY, isLocal = false } = setting;
  return search.onMeasurement({ level: search.level, perSecond, meanMs, refusedShare, isLocal }, growTo);
}

function play(happenings: readonly Happening[], setting: Setting = {}) {
  const { start = 30, most = 128 } = setting;
  const search = new LevelSearch(start, { least: 2, most });
  const steps = happenings.map((happening) => {
    const step = typeof happening === 'function' ? happening(search) : measure(search, happening, setting);
    return step === undefined ? '-' : `${step.level} ${step.why}`;
  });
  return { search, steps };
}

/** What the search does after each of these, from the `skip`th on. */
const steps = (happenings: readonly Happening[], setting: Setting = {}, skip = 0): string[] =>
  play(happenings, setting).steps.slice(skip);

/** The changes of the level at a host, after so many measurements. */
function changesAt(
  host: (level: number) => Row,
  measurements: number,
  before: readonly Happening[] = [],
  setting: Setting = {},
) {
  const { search } = play(before, setting);
  const changes: string[] = [];
  for (let at = 0; at < measurements; at += 1) {
    const step = measure(search, host(search.level), setting);
    if (step !== undefined) changes.push(`${step.level} ${step.why}`);
  }
  return changes;
}

const times = (count: number, row: Row): Row[] => Array.from({ length: count }, () => row);
/** The search holds the level 30. */
const HELD: readonly Row[] = [[100], [100], [100]];
const refused =
  (from: number, level: number) =>
  (search: LevelSearch): Step =>
    search.retreat(from, level, 'refused');
const troubled = (search: LevelSearch): Step => search.retreat(30, 21, 'troubled');

describe('growth', () => {
  it.each<[string, readonly Row[], string[]]>([
    [
      'two levels bring less than a quarter of their growth',
      [[100], [124], [174]],
      ['60 growth', '120 growth', '120 most-objects-per-second'],
    ],
    [
      'one level brings too little',
      [[100], [100], [175], [176]],
      ['60 growth', '120 growth', '128 growth', '120 most-objects-per-second'],
    ],
    [
      'a level brings just a quarter',
      [[100], [125], [125], [125]],
      ['60 growth', '120 growth', '128 growth', '60 most-objects-per-second'],
    ],
    [
      'no level is better by more than a twentieth',
      [[100], [105], [105]],
      ['60 growth', '120 growth', '30 most-objects-per-second'],
    ],
    [
      'a level is better by more than a twentieth',
      [[100], [106], [106]],
      ['60 growth', '120 growth', '60 most-objects-per-second'],
    ],
  ])('settles where %s', (_, rows, expected) => {
    expect(steps(rows)).toEqual(expected);
  });

  it('waits while the failures allow no higher level', () => {
    expect(steps([[100], [200]], { growTo: 40 })).toEqual(['40 growth', '-']);
  });

  it('goes half of the way to a refused level, and not to it', () => {
    expect(steps([...HELD, refused(30, 21), [100], [150], [200]], {}, 3)).toEqual([
      '21 refused',
      '26 growth',
      '28 growth',
      '29 growth',
    ]);
  });
});

describe('a trial with more objects', () => {
  it('must bring two fifths of its growth', () => {
    const small = { start: 2, most: 4 };
    const before: Row[] = [[100], [100]];
    expect(steps([...before, [100], [119]], small, 2)).toEqual(['3 trying-more', '2 no-faster-with-more']);
    expect(steps([...before, [100], [120], [120]], small, 2)).toEqual([
      '3 trying-more',
      '-',
      '4 trying-more',
    ]);
  });

  it('follows a success at once, and takes turns with one of fewer after a failure', () => {
    const rows: Row[] = [...HELD, [100], [200], [200], [200], ...times(7, [200])];
    expect(steps(rows, {}, 3)).toEqual([
      '39 trying-more',
      '-',
      '50 trying-more',
      '39 no-faster-with-more',
      ...Array.from({ length: 6 }, () => '-'),
      '29 trying-fewer',
    ]);
  });
});

describe('a trial with fewer objects', () => {
  const turn: Row[] = [...HELD, [100], [100], ...times(7, [100])];

  it.each([
    [93, ['-', '17 trying-fewer']],
    [92, ['30 slower-with-fewer', '-']],
  ])('must keep the rate: %d of 100', (perSecond, expected) => {
    expect(steps([...turn, [perSecond], [perSecond]], {}, turn.length)).toEqual(expected);
  });

  it.each<[string, Row, Setting, string]>([
    ['does not wait for its turn where the host queues', [100, 138], {}, '24 trying-fewer'],
    ['waits for its turn where it nearly queues', [100, 137.5], {}, '39 trying-more'],
    ['goes down to three fifths at most', [100, 1000], {}, '18 trying-fewer'],
    ['is not begun while this machine is late', [100, 1000], { isLocal: true }, '39 trying-more'],
  ])('%s', (_, row, setting, expected) => {
    expect(steps([...HELD, row], setting, 3)).toEqual([expected]);
  });

  it('takes the time of a host that became slower for its usual one', () => {
    expect(steps([...HELD, [100, 138], [92, 138], ...times(7, [100, 138])], {}, 3)).toEqual([
      '24 trying-fewer',
      '30 slower-with-fewer',
      ...Array.from({ length: 6 }, () => '-'),
      '23 trying-fewer',
    ]);
  });

  it.each<[string, readonly Row[], string[]]>([
    ['not of two in a hundred', [[100, 100, 0.02]], ['39 trying-more']],
    [
      'and keeps its level where they become few',
      [
        [100, 100, 0.5],
        [50, 100, 0.19],
      ],
      ['22 trying-fewer', '-'],
    ],
    [
      'and goes back where they do not',
      [
        [100, 100, 0.5],
        [100, 100, 0.2],
      ],
      ['22 trying-fewer', '30 slower-with-fewer'],
    ],
    [
      'and takes a share that stays for the usual one',
      [[100, 100, 0.5], [100, 100, 0.5], ...times(7, [100, 100, 1])],
      ['22 trying-fewer', '30 slower-with-fewer', ...Array.from({ length: 6 }, () => '-'), '39 trying-more'],
    ],
    [
      'but not of a usual share, when it is tried for the queue',
      [
        [100, 138, 0.02],
        [100, 100, 0.02],
      ],
      ['24 trying-fewer', '-'],
    ],
  ])('follows refusals at once, %s', (_, rows, expected) => {
    expect(steps([...HELD, ...rows], {}, 3)).toEqual(expected);
  });

  it('is never made at the lowest level', () => {
    const flat = (perSecond: number, share: number) =>
      changesAt(() => [perSecond, 1000, share], 30, [], { start: 2, most: 3 });
    for (const share of [0, 0.5])
      expect(flat(100, share).filter((change) => change.includes('fewer'))).toEqual([]);
  });
});

describe('the highest level', () => {
  it('is the end of growth, and no more are tried there', () => {
    expect(steps([[100]], { start: 128 })).toEqual(['128 most-objects-per-second']);
    const changes = changesAt((level) => [level], 100, [], { start: 128 });
    expect(new Set(changes)).toEqual(
      new Set(['128 most-objects-per-second', '96 trying-fewer', '128 slower-with-fewer']),
    );
  });

  it('that was refused is tried again after twenty measurements below it', () => {
    const changes = changesAt((level) => [level], 70, [refused(30, 29)]);
    expect(changes.indexOf('30 trying-more')).toBe(9);
    expect(changes.slice(0, 3)).toEqual([
      '29 most-objects-per-second',
      '22 trying-fewer',
      '29 slower-with-fewer',
    ]);
  });
});

it.each<[string, readonly Happening[], Setting, string | undefined]>([
  ['growth', [], {}, undefined],
  ['the search', HELD, {}, 'no-faster-with-more'],
  ['nothing at the most', [[100]], { start: 128 }, undefined],
  ['refusals', [refused(30, 21)], {}, 'refused'],
  ['nothing after refusals at the lowest level', [refused(2, 1)], {}, undefined],
  ['failures', [troubled], {}, 'troubled'],
  ['failures that allow no growth', [[100]], { growTo: 30 }, 'troubled'],
  ['growth after failures at any load', [troubled, (search) => search.goBack(30)], {}, undefined],
  ['growth after refusals at any load', [refused(30, 21), (search) => search.goBack(30)], {}, undefined],
])('the level is held by %s', (_, happenings, setting, heldBy) => {
  expect(play(happenings, setting).search.heldBy).toBe(heldBy);
});

it('a measurement of a trial is twice as long', () => {
  expect([play([]).search.turns, play(HELD).search.turns]).toEqual([1, 2]);
});
