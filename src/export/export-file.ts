/** The files of an export, before they are written. */
import type { LakeFile } from '../catalogue/lake-tables.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { Assets } from '../source/pairs.js';
import type { DatasetSpec } from '../source/venue.js';
import type { Source } from '../source/source.js';

/** A series of the lake with its committed files. */
export interface HeldData {
  readonly series: Series;
  readonly spec: DatasetSpec;
  /** Ordered by days. */
  readonly files: readonly LakeFile[];
}

/** Days `[from, to)`. */
export interface Days {
  readonly from: number;
  readonly to: number;
}

/** Rows of a series. */
export interface RowSource extends HeldData {
  /** Only rows with a time on these days; undefined: all rows of the files. */
  readonly within: Days | undefined;
  /** The days of the objects in the files, cut to the range. */
  readonly days: Days;
}

/** The form of a file. `utc`: a column with nanoseconds whose times are marked as UTC. `zip`: a CSV without header as the only member of a zip. */
export type FileForm =
  | { readonly kind: 'parquet'; readonly utc?: string }
  | {
      readonly kind: 'csv';
      readonly hasHeader: boolean;
      readonly delimiter: string;
      readonly isCompressed: boolean;
    }
  | { readonly kind: 'zip'; readonly member: string };

export interface ExportFile {
  /** Relative to the target, with `/`. */
  readonly path: string;
  readonly sources: readonly RowSource[];
  /** The SELECT of the rows. `relations`: a SELECT for the rows of each source. Its text is part of what decides whether the file is up to date. */
  readonly select: (relations: readonly string[]) => string;
  /** Expressions of columns of the SELECT by which its rows are ordered; none if the SELECT orders them. */
  readonly order: readonly string[];
  /** Of rows with the same values of these expressions, only the first is written. */
  readonly isUnique: boolean;
  readonly form: FileForm;
  /** The days of the rows. */
  readonly days: Days;
}

/** A series that an engine has no file for. */
export interface Refused {
  readonly series: Series;
  readonly reason: string;
  /** The lake is damaged, or lacks the data: the export fails. */
  readonly isFault?: true;
}

/** What an engine makes its files from. */
export interface EngineInput {
  readonly venue: Source;
  /** That of the series; of those of a dataset, the symbol of the first one. */
  readonly symbol: string;
  /** Some series of the lake: those of a symbol, or those of a dataset. */
  readonly held: readonly HeldData[];
  /** The given range; without it, all days. */
  readonly range: Partial<Days>;
  readonly settings: EngineSettings;
}

export interface EngineSettings {
  readonly markIntervals: readonly string[];
  /** Assets of symbols, from a saved answer of exchangeInfo. */
  readonly assets: ReadonlyMap<string, Assets>;
  /** Undefined: all. */
  readonly columns: readonly string[] | undefined;
  readonly delimiter: string;
  readonly timeFormat: string;
  readonly isOneFile: boolean;
}

export interface EngineFiles {
  readonly files: readonly ExportFile[];
  readonly refused: readonly Refused[];
}

/** The layout of a program that reads the files. */
export interface Engine {
  readonly name: string;
  /** The datasets that it has files for. */
  readonly datasets: readonly string[];
  /** The datasets of `datasets` that are exported only if --dataset names them. */
  readonly onlyNamed: readonly string[];
  /** The datasets of `datasets` that --interval alone does not leave out. */
  readonly anyInterval: readonly string[];
  /** The series that are given to `files` together: all of a symbol, these and the index prices of its pair, or all of a market, dataset and interval. */
  readonly groupBy: 'symbol' | 'contract' | 'dataset';
  /** Throws usage errors for settings. */
  readonly files: (input: EngineInput) => EngineFiles;
  /** Lines about the files, for the end of an export. */
  readonly notes: readonly string[];
}

/** The rows of a series on the days of the range; undefined if the lake holds none of these days. */
export function rowSource({ series, spec, files }: HeldData, range: Partial<Days>): RowSource | undefined {
  const { from = -Infinity, to = Infinity } = range;
  // A row can lie up to a day outside of the period of its object.
  const own = files.filter(({ days }) => days.from - 1 < to && days.to + 1 > from);
  const [first, last] = [own[0], own.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const days = { from: Math.max(from, first.days.from), to: Math.min(to, latest(own)) };
  const isWhole = range.from === undefined && range.to === undefined;
  const within = isWhole
    ? undefined
    : { from: range.from ?? first.days.from - 1, to: range.to ?? days.to + 1 };
  return days.from < days.to ? { series, spec, files: own, within, days } : undefined;
}

function latest(files: readonly LakeFile[]): number {
  return files.reduce((most, { days }) => Math.max(most, days.to), -Infinity);
}

/** A file that may be written, and its rank among files with the same path. */
export interface Candidate extends ExportFile {
  /** Of files with equally many days, the one with the highest rank is written. */
  readonly rank: number;
}

/** One file for each path: the one with the most days. A series that no file has is refused if it has days that the file of its path lacks. */
export function oneForEachPath(candidates: readonly Candidate[]): EngineFiles {
  const chosen = new Map<string, { file: Candidate; days: Set<number> }>();
  const all = candidates.map((file) => ({ file, days: new Set(daysOf(file.sources)) }));
  for (const one of all) {
    const other = chosen.get(one.file.path);
    const more = other === undefined ? 1 : one.days.size - other.days.size || one.file.rank - other.file.rank;
    if (more > 0) chosen.set(one.file.path, one);
  }
  const files = [...chosen.values()].map(({ file }) => file);
  const written = new Set(files.flatMap(({ sources }) => sources.map(({ series }) => series)));
  const refused = new Map<Series, Refused>();
  for (const { file, days } of all) {
    const other = chosen.get(file.path);
    const [source] = file.sources;
    const [of] = other?.file.sources ?? [];
    if (source === undefined || of === undefined || written.has(source.series)) continue;
    if ([...days].some((day) => other?.days.has(day) !== true))
      refused.set(source.series, {
        series: source.series,
        reason: `${seriesName(of.series)} goes to the same file, which lacks days that only this series has`,
      });
  }
  return { files, refused: [...refused.values()] };
}

/** The days on which any of the sources has objects, ascending. `after`: rows may lie on this many days after an object. */
export function daysOf(sources: readonly RowSource[], after = 0): number[] {
  const days = new Set<number>();
  for (const { files, days: own, within } of sources)
    for (const file of files) {
      const to = Math.min(within?.to ?? Infinity, file.days.to + after);
      const missing = new Set(file.missing);
      const isHeld = (day: number): boolean =>
        day >= file.days.from && day < file.days.to && !missing.has(day);
      for (let day = Math.max(own.from, file.days.from); day < to; day += 1)
        if (isHeld(day) || (after > 0 && isHeld(day - after))) days.add(day);
    }
  return [...days].sort((a, b) => a - b);
}

/** The part of a source on one day. `before`: also the rows of this many days before. */
export function onDay(source: RowSource, day: number, before = 0): RowSource {
  const within = { from: day - before, to: day + 1 };
  // A row can lie up to a day outside of the period of its object.
  const files = source.files.filter(({ days }) => days.from <= within.to && days.to >= within.from);
  return { ...source, within, days: { from: day, to: day + 1 }, files };
}
