/** Finds the objects that a lost file or a damaged manifest line held, so that `repair` fetches exactly these. */
import { basename } from 'node:path';
import { originalName } from '../lake/layout.js';
import { isPartitionFile } from '../lake/path-checks.js';
import type { DroppedLine } from '../lake/manifest-line.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { dayPeriod, monthOf, monthPeriod, parsePeriod, periodText } from '../model/calendar.js';
import type { Cadence, Format, Period, Series, Settings } from '../model/task.js';
import { cadencesOf, periodInFile, periodOf, restKey } from '../source/keys.js';
import { defaultPartition } from '../source/venue.js';
import type { Source } from '../source/source.js';
import type { DatasetSpec } from '../source/venue.js';

/** The origin of the rows, from the key-value metadata of a Parquet file. */
export interface Provenance {
  readonly keys: readonly string[];
  readonly settings?: Settings;
}

export interface SeriesContext {
  readonly venue: Source;
  readonly series: Series;
  readonly spec: DatasetSpec | undefined;
  /** Today as a day number. Days that are not over cannot be lost. */
  readonly today: number;
}

/** Keys of the objects in a file of the lake: from its provenance, else from its name. */
export function keysIn(context: SeriesContext, file: string, provenance: Provenance | undefined): string[] {
  const name = originalName(basename(file));
  const known = (provenance?.keys ?? []).filter((key) => periodInFile(context, name, key) !== undefined);
  if (known.length > 0) return known;
  if (!isPartitionFile(name)) return periodOf(context, file) === undefined ? [] : [file];
  return keysOfLabel(context, name.split('.')[0] ?? '');
}

/** The key of the month if the dataset has only monthly objects, else the keys of the days of the file. */
function keysOfLabel({ venue, series, spec, today }: SeriesContext, label: string): string[] {
  const period = parsePeriod('daily', label) ?? parsePeriod('monthly', label);
  if (period === undefined) return [];
  const cadences: readonly Cadence[] = spec === undefined ? [] : cadencesOf(spec, series.interval);
  const keyOf = (part: Period): string =>
    cadences.length === 0 ? restKey(series, part) : venue.archive.objectKey(series, part);
  if (cadences.length > 0 && !cadences.includes('daily')) return [keyOf(monthPeriod(monthOf(period.from)))];
  const days = Math.max(0, Math.min(period.to, today) - period.from);
  return Array.from({ length: days }, (_, index) => keyOf(dayPeriod(period.from + index)));
}

/** The key in a damaged manifest line; undefined if it cannot be read or is not of the series. */
export function keyInText(context: SeriesContext, text: string): string | undefined {
  const key = /"key":"([^"\\]+)"/.exec(text)?.[1];
  return key !== undefined && periodOf(context, key) !== undefined ? key : undefined;
}

/** `dropped` lines for these keys, except for periods that held objects cover. */
export function droppedLines(
  context: SeriesContext,
  keys: readonly string[],
  {
    held,
    format,
    settings,
    at,
  }: { held: HeldObjects; format: Format; settings: Settings | undefined; at: string },
): DroppedLine[] {
  const stored = held.size > 0 || settings === undefined ? {} : { settings };
  return [...new Set(keys)].flatMap((key): DroppedLine[] => {
    const period = periodOf(context, key);
    if (period === undefined || isHeld(held, period)) return [];
    return [{ v: 1, kind: 'dropped', key, format, at, ...stored }];
  });
}

/** Whether the held objects cover each day of the period. */
export function isHeld(held: HeldObjects, period: Period): boolean {
  if (held.ofMonth(monthOf(period.from)) !== undefined) return true;
  for (let day = period.from; day < period.to; day += 1) if (!held.hasDay(day)) return false;
  return true;
}

/** The settings that the file was written with: from its provenance, else derived from its name and columns. */
export function settingsOfFile(
  context: Pick<SeriesContext, 'venue' | 'series' | 'spec'>,
  file: string,
  found: { format: Format; provenance?: Provenance; columns?: ReadonlyMap<string, string> },
): Settings | undefined {
  const { settings } = found.provenance ?? {};
  if (settings?.format === found.format) return settings;
  const { series, spec } = context;
  if (spec === undefined) return undefined;
  const cadences = cadencesOf(spec, series.interval);
  const usual = defaultPartition(spec, series.interval);
  const isDay = /^\d{4}-\d{2}-\d{2}\./.test(basename(file));
  const isOfDays = found.provenance?.keys.some((key) => periodOf(context, key)?.cadence === 'daily') ?? true;
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

/** Periods of the keys as text, for example `2024-01-15`. */
export function periodTextsOf(context: SeriesContext, keys: readonly string[]): string[] {
  return keys.flatMap((key) => {
    const period = periodOf(context, key);
    return period === undefined ? [] : [periodText(period)];
  });
}
