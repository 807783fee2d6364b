/**
 * The months of bars: the days of each file, and what its bars are made from. A bar belongs to the month of its start. It is made if its whole
 * time lies within the days that the source holds, from the first to the last one.
 */
import type { DayRange } from '../../lake/catalogue/spans.js';
import { dayOf, eachDay, monthOf, monthStart, monthText, startOfDay } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { barStart, nextStart, type BarRule } from './bar-rule.js';
import { sourceName, type BarSource } from './source.js';

/** What bars are made of, apart from the rows. */
export interface Recipe {
  readonly rule: BarRule;
  readonly source: BarSource;
  /** Whether there are bars of times without trades. */
  readonly isFilled: boolean;
}

/** A file of bars. */
export type BarMonth = Readonly<NonNullable<ReturnType<typeof planMonth>>>;

/** All months that can have bars, ascending. */
export function planMonths(recipe: Recipe) {
  const first = monthOf(recipe.source.from);
  const months = Array.from({ length: monthOf(recipe.source.to - 1) - first + 1 }, (_, at) => first + at);
  return months.flatMap((month) => planMonth(recipe, month) ?? []);
}

function planMonth(recipe: Recipe, month: number) {
  const { rule, source, isFilled } = recipe;
  const all = { from: monthStart(month), to: monthStart(month + 1) };
  // In epoch milliseconds.
  const starts = startsIn(rule, source, all);
  if (starts.from >= starts.to) return undefined;
  // The days that have bars or lie within a bar.
  const days = eachDay(all).filter((day) => isOfBars(recipe, day));
  const own = daysOf(starts, source);
  const files = source.files.filter((file) => file.days.from < own.to && file.days.to > own.from);
  const [first] = files;
  if (days.length === 0 || first === undefined) return undefined;
  // The file before has the close for empty bars at the start.
  const before = isFilled ? source.files.findLast((file) => file.days.to <= first.days.from) : undefined;
  const from = before === undefined ? files : [before, ...files];
  const label = monthText(month);
  // Months with the same rule, starts and files of the source have the same bars.
  const digested = [ruleText(recipe), starts, from.map(({ path, sha256 }) => [basename(path), sha256])];
  return {
    month,
    label,
    file: `${label}.parquet`,
    days,
    starts,
    // The days whose rows are read, and the files of the source with these days.
    rows: { from: before?.days.from ?? own.from, to: own.to },
    from,
    sha256: createHash('sha256').update(JSON.stringify(digested)).digest('hex'),
  };
}

/** The starts of the whole bars that begin on these days; by default on all days of the source. */
function startsIn(rule: BarRule, { from, to, spec }: BarSource, days: DayRange = { from, to }): DayRange {
  const startOn = (day: number): number => nextStart(rule, startOfDay(day, spec));
  return {
    from: startOn(Math.max(from, days.from)),
    to: Math.min(barStart(rule, startOfDay(to, spec)), startOn(days.to)),
  };
}

/** Whether a day has bars or lies within one. A day without source does only if bars are longer than a day. */
function isOfBars({ rule, source }: Recipe, day: number): boolean {
  const { spec, days } = source;
  const [begin, end] = [startOfDay(day, spec), startOfDay(day + 1, spec)];
  const whole = startsIn(rule, source);
  if (end <= whole.from || begin >= whole.to) return false;
  if (days.has(day)) return true;
  const hasRows = (fromMs: number): boolean =>
    eachDay(daysOf({ from: fromMs, to: fromMs + rule.lengthMs }, source)).some((other) => days.has(other));
  return rule.lengthMs > DAY_MS && [begin, end - 1].some((atMs) => hasRows(barStart(rule, atMs)));
}

function daysOf({ from, to }: DayRange, { spec }: BarSource): DayRange {
  return { from: dayOf(from, spec), to: dayOf(to - 1, spec) + 1 };
}

/** The rule as text: bars with the same rule and the same files are the same bars. */
export function ruleText({ rule, source, isFilled }: Recipe): string {
  const { numbers, timestamps } = source.settings;
  const zone = timestamps === 'utc' ? ', timestamps utc' : '';
  return `bars ${rule.interval}, from ${sourceName(source.series)}, numbers ${numbers}${zone}${isFilled ? ', filled' : ''}`;
}
