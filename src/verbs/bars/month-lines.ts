/** The manifest lines of a month of bars. */
import type { Row } from '../../convert/duckdb.js';
import { parseDay, dayPeriod, dayText } from '../../model/calendar.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { isoInstant } from '../../convert/row-times.js';
import type { HeldObjects } from '../../lake/held-objects.js';
import type { ManifestLine, ObjectLine } from '../../model/manifest-line.js';
import type { Series } from '../../model/task.js';
import { TOOL_VERSION } from '../../model/version.js';
import { madeKey } from '../../exchange/keys.js';
import { sourceName } from './source.js';
import type { BarMonth, Recipe } from './bar-months.js';
import { droppedLine } from '../../lake/write/object-lines.js';

export interface BarTarget extends Recipe {
  readonly series: Series;
  readonly spec: DatasetSpec;
  /** Absolute. */
  readonly folder: string;
  readonly held: HeldObjects;
}

/** The lines of the existing file whose days the month does not have: the source no longer has their rows. */
export function lostDays({ held }: BarTarget, { file, days }: BarMonth): ObjectLine[] {
  const made = new Set(days.map(dayText));
  return held.inFile(file).filter(({ period }) => !made.has(period));
}

/** The lines that differ from the held ones, and the last one: the last line of a file has the digest of its month. */
export function monthLines(
  target: BarTarget,
  { month, byDay }: { readonly month: BarMonth; readonly byDay: readonly Row[] },
  { at, ...ofFile }: Pick<ObjectLine, 'at' | 'fileBytes' | 'fileSha256' | 'fileRows'>,
): ManifestLine[] {
  const { held, series, source } = target;
  const { days, file, from, sha256 } = month;
  const fileBefore = held.fileBefore(file);
  const lines = days.map((day): ObjectLine => {
    const row = byDay.find((each) => each['day'] === day && Number(each['rows']) > 0);
    return {
      v: 1,
      kind: 'object',
      key: madeKey(series, dayPeriod(day)),
      cadence: 'daily',
      period: dayText(day),
      bytes: from.reduce((sum, { bytes }) => sum + bytes, 0),
      sha256,
      verified: 'lake',
      source: sourceName(source.series),
      settings: source.settings,
      tool: TOOL_VERSION,
      rows: Number(row?.['rows'] ?? 0),
      ...(row === undefined ? {} : { first: isoInstant(row, 'first'), last: isoInstant(row, 'last') }),
      at,
      file,
      ...ofFile,
      ...(fileBefore === undefined ? {} : { fileBefore }),
    };
  });
  const isKnown = (line: ObjectLine): boolean => {
    const before = held.ofDay(parseDay(line.period) ?? 0);
    return before !== undefined && contentOf(line) === contentOf(before);
  };
  return [
    ...lostDays(target, month).map((line) => droppedLine(line, 'parquet', at)),
    ...lines.filter((line, index) => index === lines.length - 1 || !isKnown(line)),
  ];
}

const contentOf = ({ file, rows, first, last, source, settings }: ObjectLine): string =>
  JSON.stringify([file, rows, first, last, source, settings]);
