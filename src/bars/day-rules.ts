/**
 * The days of bars: which objects of the source the bars of a day are made from, and the digest of these. A bar belongs to the day of its
 * start. A bar is made if its whole time lies within the days that the source holds, from the first to the last one.
 */
import { createHash } from 'node:crypto';
import { dayOf, startOfDay } from '../model/calendar.js';
import { barStart, nextStart } from './bar-rule.js';
import type { BarRule } from './bar-rule.js';
import { sourceName } from './source-days.js';
import type { SourceDays, SourceObject } from './source-days.js';

/** What bars are made of, apart from the rows. */
export interface Recipe {
  readonly rule: BarRule;
  readonly source: SourceDays;
  /** Whether there are bars of times without trades. */
  readonly isFilled: boolean;
}

/** A day that has bars, or that lies within a bar. */
export interface BarDay {
  readonly day: number;
  /** The objects of the rows; with `isFilled`, after the object before them, which has the last price. */
  readonly objects: readonly SourceObject[];
  readonly sha256: string;
  /** The starts of its bars: epoch milliseconds `[from, to)`. Undefined for bars by trades. */
  readonly starts: { readonly from: number; readonly to: number } | undefined;
}

/** All days that can have bars, ascending. */
export function barDays(recipe: Recipe): BarDay[] {
  const { from, to } = recipe.source;
  const days: BarDay[] = [];
  for (let day = from; day < to; day += 1) {
    const found = barDay(recipe, day);
    if (found !== undefined) days.push(found);
  }
  return days;
}

function barDay(recipe: Recipe, day: number): BarDay | undefined {
  const { rule, source } = recipe;
  const own = source.byDay.get(day);
  if (rule.kind !== 'time') {
    if (own === undefined) return undefined;
    return { day, objects: [own], sha256: digestOf(recipe, [own]), starts: undefined };
  }
  const { spec, byDay } = source;
  const begin = startOfDay(day, spec);
  const end = startOfDay(day + 1, spec);
  const limit = startOfDay(source.to, spec);
  const first = nextStart(rule, begin);
  const isInside = first >= end;
  if (own === undefined && !isInside && first + rule.lengthMs <= end) return undefined;
  const start = isInside ? barStart(rule, begin) : first;
  if (start < startOfDay(source.from, spec) || start + rule.lengthMs > limit) return undefined;
  const whole = isInside ? start : barStart(rule, end - 1);
  const last = Math.min(whole, barStart(rule, limit - rule.lengthMs));
  const rows: SourceObject[] = [];
  const before = recipe.isFilled ? objectBefore(source, dayOf(start, spec)) : undefined;
  for (let at = dayOf(start, spec); at <= dayOf(last + rule.lengthMs - 1, spec); at += 1) {
    const object = byDay.get(at);
    if (object !== undefined && !rows.includes(object)) rows.push(object);
  }
  if (rows.length === 0) return undefined;
  const objects = before === undefined ? rows : [before, ...rows];
  const starts = isInside ? { from: start, to: start } : { from: start, to: last + rule.lengthMs };
  // The last bar of the day can become complete without a further object: if its next day is missing, and later days come.
  const isCut = last < whole;
  return { day, objects, sha256: digestOf(recipe, objects, isCut ? last : undefined), starts };
}

/** The last object that ends before the object of a day begins. It has the close for empty bars at the start of that object. */
export function objectBefore({ byDay, from }: SourceDays, day: number): SourceObject | undefined {
  const own = byDay.get(day);
  for (let at = (own?.from ?? day) - 1; at >= from; at -= 1) {
    const object = byDay.get(at);
    if (object !== undefined) return object;
  }
  return undefined;
}

/** The rule as text: bars with the same rule and the same objects are the same bars. */
export function ruleText({ rule, source, isFilled }: Recipe): string {
  return [
    `bars ${rule.interval}`,
    `from ${sourceName(source.series)}`,
    `numbers ${source.isText ? 'string' : 'double'}`,
    ...(source.isZoned ? ['timestamps utc'] : []),
    ...(isFilled ? ['filled'] : []),
  ].join(', ');
}

/** `last`: the start of the last bar, if later ones wait for days after the source. */
function digestOf(recipe: Recipe, objects: readonly SourceObject[], last?: number): string {
  const of = [ruleText(recipe), objects.map(({ key, sha256 }) => [key, sha256])];
  const text = JSON.stringify(last === undefined ? of : [...of, last]);
  return createHash('sha256').update(text).digest('hex');
}
