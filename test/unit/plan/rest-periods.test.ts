import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { grouped } from '../../../src/model/by-name.js';
import { dayText, eachDay, monthOf, monthStart, periodText } from '../../../src/model/calendar.js';
import { Absences } from '../../../src/lake/absences.js';
import { HeldObjects } from '../../../src/lake/held-objects.js';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import { partitionLabel } from '../../../src/plan/choose-objects.js';
import type { DayRange } from '../../../src/lake/catalogue/spans.js';
import type { Choice } from '../../../src/plan/choose-objects.js';
import {
  chooseFromRest,
  fillFromRest,
  joinPeriods,
  substitutedPlan,
} from '../../../src/plan/rest-periods.js';
import type { RestPlanContext } from '../../../src/plan/rest-periods.js';
import type { RestOffer } from '../../../src/plan/rest-evidence.js';
import type { AbsenceReason } from '../../../src/model/absence-reasons.js';
import type { PartitionPeriod, PartitionPlan, Series, Task } from '../../../src/model/task.js';
import { day, objectLine, period, SETTINGS } from '../../helpers/conversion.js';

const SERIES: Series = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' };

interface Given extends Partial<RestOffer> {
  /** Labels of what is held; those that end in `*` came from REST. */
  readonly held?: readonly string[];
}

function lineOf(text: string): ObjectLine {
  const label = text.replace('*', '');
  return objectLine(label, label === text ? {} : { verified: 'rest', key: `rest/${label}` });
}

function contextOf({ held: labels = [], ...offer }: Given): RestPlanContext {
  const held = new HeldObjects();
  for (const label of labels) held.add(lineOf(label));
  const today = offer.today ?? day('2024-06-15');
  return {
    series: SERIES,
    held,
    isRecentlyAbsent: () => false,
    absences: new Absences(),
    offer: {
      mode: 'only',
      from: day('2020-01-01'),
      to: today,
      today,
      settledTo: today,
      hasMonths: true,
      ...offer,
    },
  };
}

/** `2024-01` or `2024-01 open`: requested. `2024-01 held`: held, and not requested. `2024-01 hole`: absent, with the reason. */
function choiceText({ period: of, listed, held, absent }: Choice): string {
  const text = periodText(of);
  if (listed !== undefined) return listed.rest?.open === true ? `${text} open` : text;
  return held === undefined ? `${text} ${absent}` : `${text} held`;
}

function textsByLabel(
  choices: readonly Choice[],
  partition: PartitionPeriod = 'month',
): Record<string, string[]> {
  const partitions = grouped(choices, (choice) => partitionLabel(partition, choice.period));
  return Object.fromEntries([...partitions].map(([label, ofLabel]) => [label, ofLabel.map(choiceText)]));
}

function range(from: string | undefined, to: string): DayRange {
  return { from: from === undefined ? -Infinity : day(from), to: day(to) };
}

const chosen = (given: Given, ...ranges: readonly DayRange[]): Record<string, string[]> =>
  textsByLabel(chooseFromRest(contextOf(given), ranges));

function days(from: string, to: string): string[] {
  return Array.from({ length: day(to) - day(from) }, (_, index) => dayText(day(from) + index));
}

describe('periods of datasets that only REST has', () => {
  it('are whole months where a whole month is selected, and days otherwise', () => {
    expect(chosen({}, range('2024-01-30', '2024-03-03'))).toEqual({
      '2024-01': ['2024-01-30', '2024-01-31'],
      '2024-02': ['2024-02'],
      '2024-03': ['2024-03-01', '2024-03-02'],
    });
  });

  it('are days where the dataset has no months', () => {
    expect(chosen({ hasMonths: false }, range('2024-02-01', '2024-03-01'))).toEqual({
      '2024-02': days('2024-02-01', '2024-03-01'),
    });
  });

  it('have a file for each day with the partition `day`, but one file for a whole month', () => {
    const choices = chooseFromRest(contextOf({}), [range('2024-02-01', '2024-03-02')]);
    expect(textsByLabel(choices, 'day')).toEqual({
      '2024-02': ['2024-02'],
      '2024-03-01': ['2024-03-01'],
    });
  });

  it('are days in the current month, up to today', () => {
    expect(chosen({ today: day('2024-06-03') }, range('2024-05-01', '2024-07-01'))).toEqual({
      '2024-05': ['2024-05'],
      '2024-06': ['2024-06-01', '2024-06-02'],
    });
  });

  it('are days if the last day of the month is not over', () => {
    const today = day('2024-05-31');
    const { '2024-05': of } = chosen({ today, to: today + 1 }, range('2024-05-01', '2024-06-01'));
    expect(of?.slice(-2)).toEqual(['2024-05-30', '2024-05-31 open']);
  });

  it('start with the first available day if no start is given', () => {
    expect(chosen({ from: day('2024-04-29') }, range(undefined, '2024-06-01'))).toEqual({
      '2024-04': ['2024-04-29', '2024-04-30'],
      '2024-05': ['2024-05'],
    });
  });

  it('are days in the month in which the data of REST start, also if the whole month is selected', () => {
    const given = { from: day('2019-09-10') };
    expect(chosen(given, range('2019-08-01', '2019-11-01'))).toEqual({
      '2019-08': ['2019-08 before-history'],
      '2019-09': [
        ...days('2019-09-01', '2019-09-10').map((text) => `${text} before-history`),
        ...days('2019-09-10', '2019-10-01'),
      ],
      '2019-10': ['2019-10'],
    });
  });

  it('are days in a month of which one day is held', () => {
    expect(chosen({ held: ['2024-02-07*'] }, range('2024-02-01', '2024-03-01'))).toEqual({
      '2024-02': days('2024-02-01', '2024-03-01'),
    });
  });

  it('are a whole month that is held as a whole, also if one day of it is selected', () => {
    const choices = chooseFromRest(contextOf({ held: ['2024-02*'] }), [range('2024-02-07', '2024-02-08')]);
    expect(textsByLabel(choices)).toEqual({ '2024-02': ['2024-02'] });
    expect(choices[0]?.held?.key).toBe('rest/2024-02');
  });

  it('leave out what is held from the archive', () => {
    expect(chosen({ held: ['2024-01', '2024-02-07'] }, range('2024-01-20', '2024-02-09'))).toEqual({
      '2024-01': ['2024-01 held'],
      '2024-02': [...days('2024-02-01', '2024-02-07'), '2024-02-07 held', '2024-02-08'],
    });
  });

  it('cover each selected day that REST may have once, in order, as days or months', () => {
    const first = day('2024-01-01');
    const span = fc.tuple(fc.nat(200), fc.nat(60)).map(([from, length]) => ({
      from: first + from,
      to: first + from + length,
    }));
    const scene = fc.record({
      span,
      today: fc.integer({ min: 0, max: 250 }),
      from: fc.integer({ min: 0, max: 120 }),
      withToday: fc.boolean(),
      hasMonths: fc.boolean(),
      held: fc.array(fc.nat(200), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(scene, ({ span: wanted, today: after, from, withToday, hasMonths, held }) => {
        const today = first + after;
        const to = withToday ? today + 1 : today;
        const labels = held.map((at) => `${dayText(first + at)}*`);
        const context = contextOf({ from: first + from, to, today, hasMonths, held: labels });
        const found = chooseFromRest(context, [wanted]);
        const covered = found.flatMap(({ period: of }) => eachDay(of));
        expect(covered).toEqual(eachDay({ from: wanted.from, to: Math.min(wanted.to, to) }));
        for (const { period: of, listed, absent } of found) {
          expect(listed === undefined).toBe(of.from < first + from);
          const isAfterHeld = held.some((at) => first + at < of.from);
          const reasonOfOffered = isAfterHeld ? 'hole' : 'unknown';
          expect(absent).toBe(listed === undefined ? 'before-history' : reasonOfOffered);
          expect(listed?.rest?.open).toBe(of.to > today && listed !== undefined ? true : undefined);
        }
      }),
    );
  });
});

describe('periods that REST fills', () => {
  const choice = (text: string, absent: AbsenceReason, more: Partial<Choice> = {}): Choice => ({
    period: period(text),
    absent,
    ...more,
  });
  const filled = (given: Given, ...choices: readonly Choice[]): string[] => {
    const context = contextOf({ mode: 'fill', hasMonths: false, ...given });
    return fillFromRest(context, choices).map(choiceText);
  };
  const object = (text: string): Partial<Choice> => ({
    listed: { key: `${text}.zip`, period: period(text) },
  });

  it('are those that the archive lacks, and may still publish', () => {
    const reasons: readonly AbsenceReason[] = [
      'hole',
      'not-published-yet',
      'unknown',
      'delisted',
      'dataset-ended',
      'before-history',
      'not-listed-yet',
      'not-traded',
    ];
    expect(reasons.map((reason) => filled({}, choice('2024-02-07', reason))[0])).toEqual([
      '2024-02-07',
      '2024-02-07',
      '2024-02-07',
      ...reasons.slice(3).map((reason) => `2024-02-07 ${reason}`),
    ]);
  });

  it('keep their reason of absence if REST has no rows', () => {
    const context = contextOf({ mode: 'fill', hasMonths: false });
    const [found] = fillFromRest(context, [choice('2024-02-07', 'not-published-yet')]);
    expect(found?.listed?.rest).toEqual({
      from: day('2024-02-07'),
      to: day('2024-02-08'),
      reasonIfEmpty: 'not-published-yet',
      fills: true,
    });
    expect(found?.absent).toBe('not-published-yet');
  });

  it('leave out what the archive lists, and what is held from it', () => {
    const listed = choice('2024-02-07', 'hole', object('2024-02-07'));
    const held = choice('2024-02-08', 'hole', { held: objectLine('2024-02-08') });
    const context = contextOf({ mode: 'fill', hasMonths: false });
    const found = fillFromRest(context, [listed, held]);
    expect(found[0]).toBe(listed);
    expect(found[1]).toBe(held);
  });

  it('are those that REST filled before, until the archive has them', () => {
    const line = lineOf('2024-02-07*');
    const given = { held: ['2024-02-07*'] };
    expect(filled(given, choice('2024-02-07', 'hole', { held: line }))).toEqual(['2024-02-07']);
  });

  it('are only those that REST has', () => {
    const given = { from: day('2024-02-07'), today: day('2024-02-09') };
    const choices = days('2024-02-06', '2024-02-10').map((text) => choice(text, 'not-published-yet'));
    expect(filled(given, ...choices)).toEqual([
      '2024-02-06 not-published-yet',
      '2024-02-07',
      '2024-02-08',
      '2024-02-09 not-published-yet',
    ]);
  });

  it('are months where the archive has only months; in the current month, its past days', () => {
    const months = { hasMonths: true, today: day('2024-02-03') };
    expect(filled(months, choice('2024-01', 'not-published-yet'))).toEqual(['2024-01']);
    expect(filled(months, choice('2024-02', 'not-published-yet'))).toEqual(['2024-02-01', '2024-02-02']);
  });

  it('are days in a month of which REST filled some days before', () => {
    const given = { hasMonths: true, today: day('2024-03-02'), held: ['2024-02-01*', '2024-02-02*'] };
    expect(filled(given, choice('2024-02', 'not-published-yet'))).toEqual(days('2024-02-01', '2024-03-01'));
  });

  it('are days in the month in which the data of REST start', () => {
    const given = { hasMonths: true, from: day('2024-02-27') };
    expect(filled(given, choice('2024-02', 'hole'))).toEqual([
      ...days('2024-02-01', '2024-02-27').map((text) => `${text} before-history`),
      ...days('2024-02-27', '2024-03-01'),
    ]);
  });

  it('are no months of a dataset with daily objects', () => {
    expect(filled({ hasMonths: false }, choice('2024-02', 'hole'))).toEqual(['2024-02 hole']);
  });
});

describe('periods that are asked for together', () => {
  const task = (text: string, variant: 'fetch' | 'skip' | 'archive' = 'fetch'): Task => {
    const of = period(text);
    const rest = { from: of.from, to: of.to, reasonIfEmpty: 'hole' as const };
    return {
      series: SERIES,
      object: { key: text, period: of, ...(variant === 'archive' ? {} : { rest }) },
      action: { kind: variant === 'skip' ? 'skip' : 'fetch' },
    };
  };
  const plan = (label: string, ...tasks: readonly Task[]): PartitionPlan => ({
    series: SERIES,
    settings: SETTINGS,
    label,
    tasks,
  });
  const spans = (...plans: readonly PartitionPlan[]): (string | undefined)[] =>
    joinPeriods(plans)
      .flatMap(({ tasks }) => tasks)
      .map(({ object: { rest } }) =>
        rest === undefined ? undefined : `${dayText(rest.from)} ${dayText(rest.to)}`,
      );

  it('are consecutive periods, days or months, also across files', () => {
    const whole = '2024-01-30 2024-03-03';
    expect(
      spans(
        plan('2024-01', task('2024-01-30'), task('2024-01-31')),
        plan('2024-02', task('2024-02')),
        plan('2024-03', task('2024-03-01'), task('2024-03-02')),
      ),
    ).toEqual([whole, whole, whole, whole, whole]);
  });

  it('end where a day is held, where one comes from the archive, and where none is selected', () => {
    expect(
      spans(
        plan('2024-02', task('2024-02-01'), task('2024-02-02', 'skip'), task('2024-02-03')),
        plan(
          '2024-03',
          task('2024-03-01'),
          task('2024-03-02', 'archive'),
          task('2024-03-03'),
          task('2024-03-04'),
        ),
        plan('2024-05', task('2024-05-06')),
      ),
    ).toEqual([
      '2024-02-01 2024-02-02',
      '2024-02-02 2024-02-03',
      '2024-02-03 2024-02-04',
      '2024-03-01 2024-03-02',
      undefined,
      '2024-03-03 2024-03-05',
      '2024-03-03 2024-03-05',
      '2024-05-06 2024-05-07',
    ]);
  });

  it('are found in any order of the files', () => {
    const span = '2024-02-28 2024-03-02';
    expect(
      spans(
        plan('2024-03-01', task('2024-03-01')),
        plan('2024-02-29', task('2024-02-29')),
        plan('2024-02-28', task('2024-02-28')),
      ),
    ).toEqual([span, span, span]);
  });

  it('keep everything else of their tasks and plans', () => {
    const before = plan('2024-02', task('2024-02-01'), task('2024-02-03', 'archive'));
    const [after] = joinPeriods([{ ...before, rebuild: 'forced', force: true }]);
    expect(after).toEqual({ ...before, rebuild: 'forced', force: true });
  });

  it('have only requested days, and none beside them is requested', () => {
    const first = day('2024-01-01');
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(80), { maxLength: 40 }), fc.nat(80), (offsets, held) => {
        const tasks = offsets.map((offset) =>
          task(dayText(first + offset), offset === held ? 'skip' : 'fetch'),
        );
        const asked = new Set(offsets.filter((offset) => offset !== held).map((offset) => first + offset));
        const plans = tasks.map((one) => plan(dayText(monthStart(monthOf(one.object.period.from))), one));
        for (const { object, action } of joinPeriods(plans).flatMap((joined) => joined.tasks)) {
          const { from = 0, to = 0 } = object.rest ?? {};
          if (action.kind === 'skip') continue;
          expect(object.period.from >= from && object.period.to <= to).toBe(true);
          for (let at = from; at < to; at += 1) expect(asked.has(at)).toBe(true);
          expect([asked.has(from - 1), asked.has(to)]).toEqual([false, false]);
        }
      }),
    );
  });
});

describe('periods from REST while the archive does not answer', () => {
  const listedChoice = (label: string, held?: ObjectLine): Choice => ({
    period: period(label),
    absent: 'hole',
    listed: { key: `${label}.zip`, period: period(label) },
    ...(held === undefined ? {} : { held }),
  });
  const substituteOf = (label: string, given: Given = {}, held?: string): Choice['substitute'] => {
    const context = contextOf({ mode: 'fill', hasMonths: false, substitutes: () => true, ...given });
    const line = held === undefined ? undefined : lineOf(held);
    return fillFromRest(context, [listedChoice(label, line)])[0]?.substitute;
  };

  it('are a day or a month that the archive lists, with the key of REST', () => {
    for (const label of ['2024-02-07', '2024-02'])
      expect(substituteOf(label)).toEqual({
        key: expect.stringMatching(/^rest\//),
        period: period(label),
        rest: { ...spanOf(label), reasonIfEmpty: 'hole', fills: true },
      });
  });

  it('are open while their last rows may come yet', () => {
    expect(substituteOf('2024-02-07', { settledTo: day('2024-02-07') })).toMatchObject({
      rest: { open: true },
    });
  });

  it.each([
    ['too large', '2024-02', { substitutes: () => false }, undefined],
    ['before what REST keeps', '2024-02-07', { from: day('2024-02-08') }, undefined],
    ['a month of which REST keeps only the end', '2024-02', { from: day('2024-02-08') }, undefined],
    ['not over', '2024-02', { to: day('2024-02-20') }, undefined],
    ['held from the archive', '2024-02-07', {}, '2024-02-07'],
  ] as const)('do not substitute an object that is %s', (_, label, given, held) => {
    const context = contextOf({ mode: 'fill', hasMonths: false, substitutes: () => true, ...given });
    const listed = listedChoice(label, held === undefined ? undefined : lineOf(held));
    expect(fillFromRest(context, [listed])).toEqual([listed]);
  });

  it('are not requested again if they are held from REST, also day by day, unless they are open', () => {
    expect(substituteOf('2024-02-07', {}, '2024-02-07*')).toBe('held');
    const all = days('2024-02-01', '2024-03-01').map((label) => `${label}*`);
    expect(substituteOf('2024-02', { held: all })).toBe('held');
    expect(substituteOf('2024-02', { held: all.slice(1) })).toMatchObject({ period: period('2024-02') });
    const open: ObjectLine = { ...lineOf('2024-02-07*'), open: true };
    const context = contextOf({ mode: 'fill', hasMonths: false, substitutes: () => true });
    const found = fillFromRest(context, [listedChoice('2024-02-07', open)]);
    expect(found[0]?.substitute).toMatchObject({ period: period('2024-02-07') });
  });

  it('have the failure of the archive and the replaced objects, and are joined with their neighbours', () => {
    const failure = { code: 'http-server-error', message: 'down', attempts: 3 } as const;
    const task = (label: string, substitute: Task['substitute']): Task => ({
      series: SERIES,
      object: { key: `${label}.zip`, period: period(label) },
      action: { kind: 'fetch' },
      failure,
      ...(substitute === undefined ? {} : { substitute }),
    });
    const tasks = [
      task('2024-02-07', substituteOf('2024-02-07')),
      task('2024-02-08', substituteOf('2024-02-08')),
      task('2024-02-09', 'held'),
    ];
    const plan: PartitionPlan = { series: SERIES, settings: SETTINGS, label: '2024-02', tasks };
    const [first, second, held] = substitutedPlan(plan).tasks;
    const span = { from: day('2024-02-07'), to: day('2024-02-09') };
    for (const found of [first, second])
      expect(found?.object.rest).toMatchObject({ ...span, archiveFailed: 'http-server-error' });
    expect([first?.standsFor?.key, first?.failure]).toEqual(['2024-02-07.zip', failure]);
    expect(held?.action).toEqual({ kind: 'skip', archiveFailed: 'http-server-error' });
  });
});

function spanOf(label: string): { from: number; to: number } {
  const { from, to } = period(label);
  return { from, to };
}
