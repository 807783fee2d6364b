import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { grouped } from '../../../src/model/by-name.js';
import { dayText, eachDay, periodText } from '../../../src/model/calendar.js';
import { HeldObjects } from '../../../src/lake/held-objects.js';
import { chooseObjects, withoutUnlisted, partitionLabel } from '../../../src/plan/choose-objects.js';
import type { DayRange } from '../../../src/lake/catalogue/spans.js';
import type { ChooseContext } from '../../../src/plan/choose-objects.js';
import type { SeriesListing } from '../../../src/plan/series-listing.js';
import type { SourceObject, Cadence, PartitionPeriod } from '../../../src/model/task.js';
import { day, objectLine, period } from '../../helpers/conversion.js';

interface Archive {
  readonly daily?: readonly string[];
  readonly monthly?: readonly string[];
}

interface Given extends Archive {
  readonly partition?: PartitionPeriod;
  readonly cadences?: readonly Cadence[];
  readonly held?: readonly string[];
}

function listingOf(labels: readonly string[]): SeriesListing {
  const periods = labels.map(period);
  const objects = periods.map((of): [number, SourceObject] => [
    of.from,
    { key: `${periodText(of)}.zip`, period: of },
  ]);
  return { objects: new Map(objects), first: periods[0], last: periods.at(-1), more: false };
}

function contextOf(given: Given): ChooseContext {
  const held = new HeldObjects();
  for (const label of given.held ?? []) held.add(objectLine(label));
  return {
    cadences: given.cadences ?? ['daily', 'monthly'],
    partition: given.partition ?? 'month',
    held,
    known: held,
    list: (cadence) => Promise.resolve(listingOf(given[cadence] ?? [])),
    today: day('2024-06-01'),
    recheckDays: 7,
    spans: {},
    isRefused: () => false,
    isHalted: () => false,
  };
}

/** Labels of the chosen periods by partition. */
async function chosen(given: Given, from: string | undefined, to: string): Promise<Record<string, string[]>> {
  const range = { from: from === undefined ? -Infinity : day(from), to: day(to) };
  const choices = await chooseObjects(contextOf(given), [range]);
  const partitions = grouped(choices, (choice) => partitionLabel(given.partition ?? 'month', choice.period));
  return Object.fromEntries(
    [...partitions].map(([label, ofLabel]) => [label, ofLabel.map((choice) => periodText(choice.period))]),
  );
}

function days(from: string, to: string): string[] {
  return Array.from({ length: day(to) - day(from) }, (_, index) => dayText(day(from) + index));
}

const JANUARY = days('2024-01-01', '2024-02-01');
const FEBRUARY = days('2024-02-01', '2024-03-01');

describe('month partitions', () => {
  it('take the dailies of a whole month that has no monthly object', async () => {
    expect(await chosen({ daily: JANUARY }, '2024-01-01', '2024-02-01')).toEqual({ '2024-01': JANUARY });
  });

  it('keep the dailies of a month of which they hold one', async () => {
    const given = { daily: JANUARY, monthly: ['2024-01'], held: ['2024-01-07'] };
    expect(await chosen(given, '2024-01-01', '2024-02-01')).toEqual({ '2024-01': JANUARY });
  });

  it('stay with a month that they hold as a whole, when one day of it is asked for', async () => {
    const given = { daily: JANUARY, monthly: ['2024-01'], held: ['2024-01'] };
    expect(await chosen(given, '2024-01-30', '2024-01-31')).toEqual({ '2024-01': ['2024-01'] });
  });

  it('name a month as wider than requested if the archive has no days, and not if the lake holds the month', async () => {
    const isWider = async (given: Given): Promise<boolean | undefined> => {
      const range = { from: day('2024-01-03'), to: day('2024-01-04') };
      return (await chooseObjects(contextOf(given), [range]))[0]?.isWider;
    };
    expect(await isWider({ monthly: ['2024-01'] })).toBe(true);
    expect(await isWider({ daily: JANUARY, monthly: ['2024-01'], held: ['2024-01'] })).toBeUndefined();
  });

  it('tell what is held of a period that the archive does not list any more', async () => {
    const context = contextOf({ monthly: [], held: ['2024-01'] });
    const [choice] = await chooseObjects(context, [{ from: day('2024-01-05'), to: day('2024-01-06') }]);
    expect(choice?.held?.key).toBe('2024-01.zip');
    expect(choice?.listed).toBeUndefined();
  });
});

describe('bars longer than a day', () => {
  it('are absent with their whole month where nothing of it is listed, and not on single days', async () => {
    const context = contextOf({ monthly: ['2024-03'], daily: ['2024-05-06'] });
    const range = { from: day('2024-03-01'), to: day('2024-06-15') };
    const kept = await withoutUnlisted(context, await chooseObjects(context, [range]));
    expect(kept.map(({ period: of, listed }) => [periodText(of), listed !== undefined])).toEqual([
      ['2024-03', true],
      ['2024-04', false],
      ['2024-05-06', true],
    ]);
  });

  it('are not absent in a month with days that are proven to have none', async () => {
    const context = contextOf({ monthly: ['2024-03'] });
    const range = { from: day('2024-03-01'), to: day('2024-05-01') };
    const choices = await chooseObjects(context, [range]);
    const proven = choices.map((choice) =>
      choice.period.from === day('2024-04-10') ? { ...choice, absent: 'delisted' as const } : choice,
    );
    const kept = await withoutUnlisted(context, proven);
    expect(kept.map(({ period: of }) => periodText(of))).toEqual(['2024-03', '2024-04-10']);
  });
});

describe('day partitions', () => {
  it('take dailies even where a monthly object exists', async () => {
    const given = { partition: 'day', daily: JANUARY, monthly: ['2024-01'] } as const;
    const expected = Object.fromEntries(JANUARY.map((label) => [label, [label]]));
    expect(await chosen(given, '2024-01-01', '2024-02-01')).toEqual(expected);
  });
});

describe('a part of a month', () => {
  const ENDS = ['2024-01-30', '2024-01-31'];

  it.each([
    ['day', [], ['2024-01']],
    ['day', ['2024-01-02'], ENDS],
    ['month', ['2024-01-02', '2024-01-31'], ['2024-01']],
    ['month', ENDS, ENDS],
  ] as const)(
    'in %s files, of which the archive has the days %j, is taken from %j',
    async (partition, daily, keys) => {
      const found = await chosen({ partition, daily, monthly: ['2024-01'] }, '2024-01-30', '2024-02-01');
      expect(Object.values(found).flat()).toEqual(keys);
    },
  );

  it('of the present month needs no listing of months', async () => {
    const context = contextOf({ daily: ['2024-06-01'] });
    const list = (cadence: Cadence): Promise<SeriesListing> =>
      cadence === 'daily' ? context.list(cadence) : Promise.reject(new Error('listed'));
    const range = { from: day('2024-06-01'), to: day('2024-06-03') };
    const choices = await chooseObjects({ ...context, list, today: day('2024-06-03') }, [range]);
    expect(choices).toHaveLength(2);
  });
});

describe('a single cadence', () => {
  it('monthly takes the whole month for a part of it', async () => {
    const given = { cadences: ['monthly'], monthly: ['2024-01'] } as const;
    expect(await chosen(given, '2024-01-30', '2024-02-02')).toEqual({
      '2024-01': ['2024-01'],
      '2024-02': ['2024-02'],
    });
  });

  it('daily takes days where a monthly object exists', async () => {
    const given = { cadences: ['daily'], daily: JANUARY, monthly: ['2024-01'] } as const;
    expect(await chosen(given, '2024-01-01', '2024-02-01')).toEqual({ '2024-01': JANUARY });
  });
});

describe('an open start', () => {
  it('begins with the first period that any cadence lists', async () => {
    const given = { daily: days('2024-01-20', '2024-02-01'), monthly: ['2023-12', '2024-01'] };
    expect(await chosen(given, undefined, '2024-02-01')).toEqual({
      '2023-12': ['2023-12'],
      '2024-01': ['2024-01'],
    });
  });

  it('is empty for a series that lists nothing', async () => {
    expect(await chosen({}, undefined, '2024-02-01')).toEqual({});
  });
});

const FIRST = day('2023-12-01');
const dayNumber = fc.integer({ min: FIRST, max: FIRST + 120 });
const months = fc.subarray(['2023-12', '2024-01', '2024-02', '2024-03']);
const dailies = fc.oneof(
  fc.uniqueArray(dayNumber.map(dayText), { maxLength: 8 }),
  fc.constant([...JANUARY, ...FEBRUARY]),
);
const archives = fc.record({
  daily: dailies,
  monthly: months,
  held: fc.oneof(fc.constant([]), months, fc.uniqueArray(dayNumber.map(dayText), { maxLength: 3 })),
  partition: fc.constantFrom<PartitionPeriod>('day', 'month'),
  cadences: fc.constantFrom<Cadence[]>(['daily', 'monthly'], ['daily'], ['monthly']),
});
const ranges = fc.array(
  fc.tuple(dayNumber, fc.nat(70)).map(([from, length]): DayRange => ({ from, to: from + length })),
  { minLength: 1, maxLength: 3 },
);

it('never chooses two objects for one day, and leaves no wanted day out', async () => {
  await fc.assert(
    fc.asyncProperty(archives, ranges, async (given, wanted) => {
      const covered = new Map<number, number>();
      for (const choice of await chooseObjects(contextOf(given), wanted)) {
        expect(given.cadences).toContain(choice.period.cadence);
        for (const at of eachDay(choice.period)) covered.set(at, (covered.get(at) ?? 0) + 1);
      }
      expect([...covered.values()].filter((times) => times !== 1)).toEqual([]);
      for (const { from, to } of wanted)
        for (let at = from; at < to; at += 1) expect(covered.has(at)).toBe(true);
    }),
    { numRuns: 300 },
  );
});
