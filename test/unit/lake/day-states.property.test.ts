/** Spans and amounts, compared with models that count each second and day. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { klinesLine } from '../../../scripts/synthetic-lake.js';
import { absentDays, isMissing } from '../../../src/lake/catalogue/absent-days.js';
import type { GapReason } from '../../../src/lake/catalogue/absent-days.js';
import { statesOf } from '../../../src/lake/catalogue/day-states.js';
import { append, intersect, subtract, union } from '../../../src/lake/catalogue/spans.js';
import type { Spans } from '../../../src/lake/catalogue/spans.js';
import { periodsOf } from '../../../src/lake/catalogue/period-amounts.js';
import { dayText } from '../../../src/model/calendar.js';
import { emptyManifest } from '../../../src/lake/manifest.js';
import { Absences } from '../../../src/lake/absences.js';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import type { AbsenceReason } from '../../../src/model/absence-reasons.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { findDataset } from '../../../src/exchange/exchange-spec.js';

const END = 60;
const DAY = 86_400;

/** The seconds (or days) from 0 to `end` that the spans contain. */
function members(spans: Spans, end = END): boolean[] {
  return Array.from({ length: end }, (_, second) => {
    for (let i = 0; i < spans.length; i += 2)
      if (second >= (spans[i] ?? 0) && second < (spans[i + 1] ?? 0)) return true;
    return false;
  });
}

function spansOf(set: readonly boolean[]): number[] {
  const spans: number[] = [];
  set.forEach((isIn, at) => {
    if (isIn) append(spans, at, at + 1);
  });
  return spans;
}

const sets = fc.array(fc.boolean(), { minLength: END, maxLength: END });

describe('spans', () => {
  it('intersect and subtract like sets, and stay ascending and disjoint', () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const [one, other] = [spansOf(a), spansOf(b)];
        expect(members(one)).toEqual(a);
        expect(intersect(one, other)).toEqual(spansOf(a.map((isIn, at) => isIn && b[at] === true)));
        expect(subtract(one, other)).toEqual(spansOf(a.map((isIn, at) => isIn && b[at] !== true)));
        expect(union([...one, ...other])).toEqual(spansOf(a.map((isIn, at) => isIn || b[at] === true)));
      }),
    );
  });
});

const REASONS: readonly AbsenceReason[] = ['hole', 'not-published-yet'];
/** The state of each day: held, absent with a recorded reason, or unknown. */
const states = fc.array(fc.constantFrom('held' as const, 'unknown' as const, ...REASONS), {
  minLength: 1,
  maxLength: END,
});

describe('absent days', () => {
  it('have the right reason each, and neighbours with one reason are joined', () => {
    fc.assert(
      fc.property(states, (days) => {
        const held = spansOf(days.map((state) => state === 'held'));
        const found = absentDays(held, 0, days.length, { absences: remembered(days) });
        const byDay = found.flatMap(({ from, to, reason }) =>
          Array.from({ length: to - from }, (_, i) => [from + i, reason] as const),
        );
        expect(byDay).toEqual(modelOf(days));
        for (const [i, piece] of found.entries()) {
          const before = found[i - 1];
          expect(before?.to === piece.from && before.reason === piece.reason).toBe(false);
        }
      }),
    );
  });
});

function remembered(days: readonly string[], first = 0, absences = new Absences()): Absences {
  for (const [index, reason] of days.entries()) {
    const day = first + index;
    if (reason === 'held' || reason === 'unknown') continue;
    absences.add({
      v: 1,
      kind: 'absent',
      cadence: 'daily',
      first: dayText(day),
      last: dayText(day),
      reason: reason as AbsenceReason,
      asked: 1,
      at: '2024-01-01T00:00:00Z',
      tool: 'test',
    });
  }
  return absences;
}

function modelOf(days: readonly string[]): [number, GapReason][] {
  const firstHeld = days.indexOf('held');
  const lastHeld = days.lastIndexOf('held');
  return days.flatMap((state, day): [number, GapReason][] => {
    if (state === 'held') return [];
    // What came later refutes that it was only late.
    const isRefuted = state === 'not-published-yet' && day < lastHeld;
    if (state !== 'unknown' && !isRefuted) return [[day, state as AbsenceReason]];
    const isOutside = firstHeld < 0 || day < firstHeld || day > lastHeld;
    return [[day, isOutside ? 'not-fetched' : 'unexplained']];
  });
}

const SPEC = findDataset(loadBinance(), 'um', 'klines');

/** A day of hourly rows without those of some hours. */
function lineOf(day: number, lacks: readonly boolean[]): ObjectLine {
  const instant = (hour: number): string => new Date((day * DAY + hour * 3600) * 1000).toISOString();
  const spans = spansOf(lacks);
  const gaps = spans.flatMap((hour, at) =>
    at % 2 === 0 ? [[hour, spans[at + 1] ?? hour].map(instant)] : [],
  );
  const rows = lacks.filter((isLacking) => !isLacking).length;
  return klinesLine('BTCUSDT', dayText(day), {
    rows,
    ...(gaps.length > 0 ? { gaps } : {}),
  }) as unknown as ObjectLine;
}

describe('amounts', () => {
  const hourSets = fc.array(fc.boolean(), { minLength: END * 24, maxLength: END * 24 });
  it('of a series, its months and its days equal a count of each hour', () => {
    fc.assert(
      fc.property(states, hourSets, fc.nat(40), (days, lacking, offset) => {
        const at = offset + 20_000;
        const lacks = lacking.map((isLacking, hour) => isLacking && days[Math.floor(hour / 24)] === 'held');
        const manifest = emptyManifest();
        remembered(days, at, manifest.absences);
        for (const [day, state] of days.entries())
          if (state === 'held') manifest.parquet.add(lineOf(at + day, lacks.slice(day * 24, day * 24 + 24)));
        const series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' };
        const range = { from: at, to: at + days.length };
        const read = { manifest, revisions: {}, dropped: {}, missingFiles: new Set<string>() };
        const [judged] = statesOf(series, read, { range, today: at, failures: [], spec: SPEC, halts: [] });
        if (judged === undefined) return;
        // Without a held object, days are counted.
        const unit = judged.rowSeconds === undefined ? 1 : 24;
        const reasons = new Map(modelOf(days));
        const model = days.map((_, day) => {
          const reason = reasons.get(day);
          if (reason !== undefined) return isMissing(reason) ? [unit, unit] : [0, 0];
          return [24, lacks.slice(day * 24, day * 24 + 24).filter(Boolean).length];
        });
        expect(periodsOf(judged, 'day').map(({ expected, missing }) => ({ expected, missing }))).toEqual(
          model.map(([expected, missing]) => ({ expected, missing })),
        );
        const sums = (all: readonly (readonly number[])[]): object => ({
          expected: all.reduce((sum, [expected = 0]) => sum + expected, 0),
          missing: all.reduce((sum, [, missing = 0]) => sum + missing, 0),
        });
        expect(judged).toMatchObject({
          ...sums(model),
          excused: unit * model.filter(([expected]) => expected === 0).length,
        });
        const months = new Map<string, number[][]>();
        for (const [day, amounts] of model.entries()) {
          const month = dayText(at + day).slice(0, 7);
          months.set(month, [...(months.get(month) ?? []), amounts]);
        }
        expect(periodsOf(judged, 'month').map(({ expected, missing }) => ({ expected, missing }))).toEqual(
          [...months.values()].map(sums),
        );
      }),
      { numRuns: 200 },
    );
  });
});
