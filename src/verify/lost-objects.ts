/** Which objects a file or a damaged line told of, so that exactly these are asked for again. */
import { basename } from 'node:path';
import type { Absences } from '../lake/absences.js';
import { originalName } from '../lake/layout.js';
import type { DroppedLine, ObjectLine } from '../lake/manifest-line.js';
import type { Held } from '../lake/manifest.js';
import { dayPeriod, monthOf, monthPeriod, parsePeriod, periodText } from '../model/calendar.js';
import type { AbsenceReason, Cadence, Format, Period, Series, Settings } from '../model/task.js';
import { cadencesOf, objectKey, periodOfKey, restKey, seriesPrefix } from '../source/keys.js';
import { defaultPartition } from '../source/venue.js';
import type { DatasetSpec, Venue } from '../source/venue.js';

/** What a Parquet file says of where its rows are from. */
export interface Provenance {
  readonly keys: readonly string[];
  readonly settings?: Settings;
}

export interface LostContext {
  readonly venue: Venue;
  readonly series: Series;
  readonly spec: DatasetSpec | undefined;
  /** The running day: what is not over is not lost. */
  readonly today: number;
}

/** The period of an object of the series, by its key; undefined for any other text. */
export function periodOf(
  { venue, series }: Pick<LostContext, 'venue' | 'series'>,
  key: string,
): Period | undefined {
  for (const cadence of ['daily', 'monthly'] as const) {
    const period = periodOfKey(seriesPrefix(venue, series, cadence), series, cadence, key);
    if (period !== undefined) return period;
    const ofRest = parsePeriod(cadence, key.slice(key.lastIndexOf('/') + 1));
    if (ofRest !== undefined && restKey(series, ofRest) === key) return ofRest;
  }
  return undefined;
}

/** Objects in a file of the lake, by its own word, else by its name. */
export function keysIn(context: LostContext, file: string, provenance: Provenance | undefined): string[] {
  const known = (provenance?.keys ?? []).filter((key) => periodOf(context, key) !== undefined);
  if (known.length > 0) return known;
  const name = originalName(basename(file));
  if (name.endsWith('.zip')) {
    const keys = (['daily', 'monthly'] as const).map(
      (cadence) => `${seriesPrefix(context.venue, context.series, cadence)}${name}`,
    );
    return keys.filter((key) => file === key && periodOf(context, key) !== undefined);
  }
  return keysOfLabel(context, name.split('.')[0] ?? '');
}

/** A day file is one day; a month file may be of days or of the month. */
function keysOfLabel({ venue, series, spec, today }: LostContext, label: string): string[] {
  const period = parsePeriod('daily', label) ?? parsePeriod('monthly', label);
  if (period === undefined) return [];
  const cadences: readonly Cadence[] = spec === undefined ? [] : cadencesOf(spec, series.interval);
  const keyOf = (part: Period): string =>
    cadences.length === 0 ? restKey(series, part) : objectKey(venue, series, part);
  if (cadences.length > 0 && !cadences.includes('daily')) return [keyOf(monthPeriod(monthOf(period.from)))];
  const days = Math.max(0, Math.min(period.to, today) - period.from);
  return Array.from({ length: days }, (_, index) => keyOf(dayPeriod(period.from + index)));
}

/** The key in what is left of a manifest line. */
export function keyInText(context: LostContext, text: string): string | undefined {
  const key = /"key":"((?:data|rest)\/[^"\\]+)"/.exec(text)?.[1];
  return key !== undefined && periodOf(context, key) !== undefined ? key : undefined;
}

/** Lines that say that these objects are held no more; none for what is held by another object. */
export function droppedLines(
  context: LostContext,
  keys: readonly string[],
  { held, format, settings, at }: { held: Held; format: Format; settings: Settings | undefined; at: string },
): DroppedLine[] {
  const said = held.size > 0 || settings === undefined ? {} : { settings };
  return [...new Set(keys)].flatMap((key): DroppedLine[] => {
    const period = periodOf(context, key);
    if (period === undefined || isHeld(held, period)) return [];
    return [{ v: 1, kind: 'dropped', key, format, at, ...said }];
  });
}

export function isHeld(held: Held, period: Period): boolean {
  if (held.ofMonth(monthOf(period.from)) !== undefined) return true;
  for (let day = period.from; day < period.to; day += 1) if (held.ofDay(day) === undefined) return false;
  return true;
}

/** How a file was written, as far as it and its dataset say. */
export function settingsOfFile(
  { series, spec }: LostContext,
  file: string,
  found: { format: Format; provenance?: Provenance; columns?: ReadonlyMap<string, string> },
): Settings | undefined {
  if (found.provenance?.settings !== undefined) return found.provenance.settings;
  if (spec === undefined) return undefined;
  const cadences = cadencesOf(spec, series.interval);
  const usual = defaultPartition(spec, series.interval);
  const isDay = /^\d{4}-\d{2}-\d{2}\./.test(basename(file));
  const isOfDays = found.provenance?.keys.some((key) => /\d{4}-\d{2}-\d{2}(\.zip)?$/.test(key)) ?? true;
  const numbers = spec.columns.filter(({ type }) => type === 'number').map(({ name }) => name);
  const isText = numbers.some((name) => found.columns?.get(name) === 'BYTE_ARRAY');
  return {
    format: found.format,
    partition: isDay ? 'day' : isOfDays ? 'month' : usual,
    cadence: cadences.length === 1 ? (cadences[0] ?? 'auto') : 'auto',
    numbers: isText ? 'string' : 'double',
    timestamps: 'us',
    asPublished: false,
  };
}

/** Lines of what is held, told by their periods. */
function periodsOf(lines: readonly ObjectLine[]): Period[] {
  return lines.flatMap((line) => parsePeriod(line.cadence, line.period) ?? []);
}

export function textsOf(context: LostContext, keys: readonly string[]): string[] {
  return keys.flatMap((key) => {
    const period = periodOf(context, key);
    return period === undefined ? [] : [periodText(period)];
  });
}

// What `repair` asks for of a series: days that are missing between the first and the last held one, or not held as
// they should be.

export interface Missing {
  readonly held: Held;
  readonly absences: Absences;
  /** Objects in files that are not right. */
  readonly broken: readonly ObjectLine[];
  /** Objects that were held once, that the archive has another revision of, or that are cut. */
  readonly others: readonly Period[];
  /** The running day. */
  readonly today: number;
}

/** For every other reason there is nothing to be had. */
const MAY_COME: ReadonlySet<AbsenceReason> = new Set(['hole', 'not-published-yet']);

/** Half-open, ascending and disjoint. */
export function missingDays(missing: Missing): { from: number; to: number }[] {
  const { held, broken, others, today } = missing;
  const lines = held.lines();
  const days = new Set<number>();
  const add = ({ from, to }: Pick<Period, 'from' | 'to'>): void => {
    for (let day = from; day < Math.min(to, today); day += 1) days.add(day);
  };
  periodsOf([...broken, ...lines.filter(isIncomplete)]).forEach(add);
  others.forEach(add);
  const periods = periodsOf(lines);
  const first = Math.min(...periods.map(({ from }) => from));
  const last = Math.max(...periods.map(({ to }) => to));
  for (let day = first; day < last; day += 1) if (isMissing(missing, day)) add({ from: day, to: day + 1 });
  return spansOf([...days].sort((a, b) => a - b));
}

/** Its rows were not all there when it was asked for. */
function isIncomplete({ open, gaps }: ObjectLine): boolean {
  return open === true || (gaps?.length ?? 0) > 0;
}

function isMissing({ held, absences }: Missing, day: number): boolean {
  if (isHeld(held, { cadence: 'daily', from: day, to: day + 1 })) return false;
  const known = absences.days().get(day) ?? absences.months().get(monthOf(day));
  return known === undefined || MAY_COME.has(known.reason);
}

function spansOf(days: readonly number[]): { from: number; to: number }[] {
  const spans: { from: number; to: number }[] = [];
  for (const day of days) {
    const last = spans.at(-1);
    if (last?.to === day) last.to = day + 1;
    else spans.push({ from: day, to: day + 1 });
  }
  return spans;
}
