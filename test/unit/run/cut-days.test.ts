import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dayPeriod, dayText, parseDay, UTC } from '../../../src/model/calendar.js';
import { cutStretches } from '../../../src/lake/catalogue/cut-days.js';
import type { HeldSpan } from '../../../src/lake/held-objects.js';
import { lakePaths } from '../../../src/lake/layout.js';
import { Manifests } from '../../../src/lake/manifests.js';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import { CutDays } from '../../../src/run/partitions/cut-days.js';
import type { SourceObject, PartitionPlan } from '../../../src/model/task.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { scratchFolder } from '../../helpers/folders.js';

const ARCHIVE = loadBinance().archive;

const DAY_MS = 86_400_000;
const HOUR_MS = 3600_000;
const FIRST = 20_000;
const scratch = scratchFolder();

/** Hour of the first row, hour of the last row, and number of rows of a day. */
type Hours = readonly [first: number, last: number, rows?: number];
const WHOLE: Hours = [0, 24, 5000];

function line(day: number, [first, last, rows = 1000]: Hours): ObjectLine {
  const instant = (hour: number): string => new Date(day * DAY_MS + hour * HOUR_MS).toISOString();
  const facts = { period: dayText(day), rows, first: instant(first), last: instant(last) };
  return { cadence: 'daily', ...facts } as ObjectLine;
}

function heldOf(of: ObjectLine): HeldSpan {
  const from = parseDay(of.period) ?? 0;
  return { facts: of, from, to: from + 1 };
}

/** The cut ends of consecutive days; undefined is a day that is not held. `isIdle`: the symbol is not traded on other days. */
function cuts(days: readonly (Hours | undefined)[], isIdle = false): string[] {
  const lines = days.flatMap((hours, index) => (hours === undefined ? [] : [line(FIRST + index, hours)]));
  return cutStretches(
    lines.map(heldOf),
    (day) => isIdle && (day < FIRST || day >= FIRST + days.length),
    UTC,
  ).map(({ day, at }) => `${day - FIRST} ${at}`);
}

describe('a day is cut', () => {
  it('at the end that most of its neighbours do not lack', () => {
    expect(cuts([WHOLE, [0, 7], WHOLE])).toEqual(['1 end']);
    expect(cuts([WHOLE, [17, 24], WHOLE])).toEqual(['1 begin']);
    expect(cuts([WHOLE, [9, 15], WHOLE])).toEqual(['1 begin', '1 end']);
    expect(cuts([WHOLE, WHOLE, [0, 7]])).toEqual(['2 end']);
    expect(cuts([WHOLE, WHOLE, [0, 7], [0, 9], WHOLE])).toEqual(['2 end', '3 end']);
  });

  it('where ids are missing at midnight, but not where they begin anew', () => {
    const withIds = (day: number, first: number): HeldSpan =>
      heldOf({ ...line(FIRST + day, WHOLE), ids: { first, last: first + 999 } });
    const cutAt = (next: number): number =>
      cutStretches([withIds(0, 5000), withIds(1, next)], () => false, UTC).length;
    expect([6000, 6001, 0].map(cutAt)).toEqual([0, 1, 0]);
  });

  it('by more than two hours', () => {
    expect(cuts([WHOLE, [0, 21.9], WHOLE])).toEqual(['1 end']);
    expect(cuts([WHOLE, [0, 22], WHOLE])).toEqual([]);
  });

  it('only where two neighbours are held within a week', () => {
    expect(cuts([WHOLE, [0, 7]])).toEqual([]);
    const week = Array.from({ length: 7 }, () => undefined);
    expect(cuts([WHOLE, WHOLE, ...week, [0, 7]])).toEqual([]);
    expect(cuts([WHOLE, WHOLE, ...week.slice(2), [0, 7]])).toEqual(['7 end']);
  });

  it('only where at least ten rows are missing at its rate', () => {
    expect(cuts([WHOLE, [0, 12, 11], WHOLE])).toEqual(['1 end']);
    expect(cuts([WHOLE, [0, 12, 10], WHOLE])).toEqual([]);
    expect(cuts([WHOLE, [7, 7, 1], WHOLE])).toEqual([]);
  });

  it('not where its neighbours have the same pause', () => {
    expect(
      cuts([
        [0, 21],
        [0, 20],
        [0, 21],
      ]),
    ).toEqual([]);
  });

  it('not when it was fetched before it was over', () => {
    const days = [WHOLE, WHOLE, [0, 7] as Hours].map((hours, index) => line(FIRST + index, hours));
    const open = days.map((day, index) => (index === 2 ? { ...day, open: true as const } : day));
    expect(cutStretches(days.map(heldOf), () => false, UTC)).toHaveLength(1);
    expect(cutStretches(open.map(heldOf), () => false, UTC)).toEqual([]);
  });

  it('at the begin of the first held day and at the end of the last one, but not next to a day without trading', () => {
    expect(cuts([[9, 15], WHOLE, WHOLE])).toEqual(['0 begin', '0 end']);
    expect(cuts([[9, 15], WHOLE, WHOLE], true)).toEqual(['0 end']);
    expect(cuts([WHOLE, WHOLE, [9, 15]], true)).toEqual(['2 begin']);
  });

  it('never where all days have rows in each hour, and always where one of them lacks hours', () => {
    const hoursOf = fc.tuple(
      fc.double({ min: 0, max: 0.1, noNaN: true }),
      fc.double({ min: 23.9, max: 24, noNaN: true }),
    );
    fc.assert(
      fc.property(
        fc.array(hoursOf, { minLength: 3, maxLength: 20 }),
        fc.nat(),
        fc.double({ min: 1, max: 20, noNaN: true }),
        (days, index, last) => {
          expect(cuts(days)).toEqual([]);
          const at = index % days.length;
          const cut = days.map((hours, day): Hours => (day === at ? [hours[0], last] : hours));
          expect(cuts(cut)).toEqual([`${at} end`]);
        },
      ),
    );
  });
});

const tradesOf = (dataset: string): PartitionPlan => {
  const series = { market: 'um', dataset, symbol: 'BTCUSDT' };
  return { series, settings: { format: 'parquet' } } as PartitionPlan;
};

interface Doubts {
  readonly days: CutDays;
  readonly told: string[];
  readonly doubt: (index: number, dataset?: string, object?: Partial<SourceObject>) => Promise<boolean>;
}

/** Days whose rows end at seven, in an empty lake. */
function doubts(): Doubts {
  const told: string[] = [];
  const days = new CutDays({
    paths: lakePaths(scratch),
    manifests: new Manifests(ARCHIVE),
    exchange: loadBinance(),
    nowMs: (FIRST + 5000) * DAY_MS,
    tell: (_plan, object) => {
      told.push(object.key);
      return Promise.resolve();
    },
  });
  const doubt: Doubts['doubt'] = (index, dataset = 'aggTrades', object = {}) => {
    const { rows = 0, first = '', last = '' } = line(FIRST + index, [0, 7]);
    const outcome = { kind: 'ok', bytes: 1, unverified: false, rows, first, last } as const;
    const period = dayPeriod(FIRST + index);
    return days.doubt({
      plan: tradesOf(dataset),
      object: { key: `day ${index}`, period, ...object },
      outcome,
    });
  };
  return { days, told, doubt };
}

it('reports a thousand doubtful days at once, to keep no more in memory', async () => {
  const { days, told, doubt } = doubts();
  for (let index = 0; index < 999; index += 1) expect(await doubt(index)).toBe(true);
  expect(told).toEqual([]);
  expect(await doubt(999)).toBe(true);
  expect(told).toHaveLength(1000);
  await days.tell();
  expect(told).toHaveLength(1000);
});

it('only days of ticks that are over are doubtful, not bars', async () => {
  const { doubt } = doubts();
  for (const dataset of ['aggTrades', 'trades', 'bookTicker']) expect(await doubt(0, dataset)).toBe(true);
  expect(await doubt(0, 'klines')).toBe(false);
  const rest = { from: FIRST, to: FIRST + 1, reasonIfEmpty: 'hole', open: true } as const;
  expect(await doubt(0, 'aggTrades', { rest })).toBe(false);
});
