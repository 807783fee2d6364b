/** The files of an export, before they are written: a SELECT over rows of the lake, and the form of the file. */
import type { DayRange } from '../catalogue/catalogue.js';
import type { LakeFile } from '../catalogue/lake-tables.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { Assets } from '../source/pairs.js';
import type { Source } from '../source/source.js';
import type { DatasetSpec } from '../source/venue.js';

/** Rows of a series. */
export interface RowSource {
  readonly series: Series;
  readonly spec: DatasetSpec;
  /** Ordered by days. */
  readonly files: readonly LakeFile[];
  /** Only rows with a time on these days. */
  readonly range: Partial<DayRange>;
}

/** The form of a file. */
export interface FileForm {
  /** Options of COPY. */
  readonly copy: string;
  /** A column with nanoseconds whose times are marked as UTC. */
  readonly utc?: string;
  /** The file is a zip with this as the only member. */
  readonly member?: string;
}

export interface ExportFile {
  /** Relative to the target, with `/`. */
  readonly path: string;
  readonly sources: readonly RowSource[];
  /** The SELECT of the rows, in their order. `relations`: a SELECT for the rows of each source. Its text is part of the recipe. */
  readonly select: (relations: readonly string[]) => string;
  readonly form: FileForm;
}

/** A series that is not exported. */
export interface Refused {
  readonly series: Series;
  readonly reason: string;
  /** The lake is damaged, or lacks the data: the export fails. */
  readonly isFault?: true;
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

/** What an engine makes its files from. */
export interface EngineInput {
  readonly venue: Source;
  /** Series of one pair, or of one dataset; bars come last. */
  readonly sources: readonly RowSource[];
  readonly settings: EngineSettings;
}

export interface EngineFiles {
  /** Several files may have one path, see `oneForEachPath`. */
  readonly files: readonly ExportFile[];
  readonly refused: readonly Refused[];
}

/** The layout of a program that reads the files. */
export interface Engine {
  readonly name: string;
  /** The datasets that it has files for; empty: all. */
  readonly datasets: readonly string[];
  /** The datasets of `datasets` that are exported only if --dataset names them. */
  readonly onlyNamed: readonly string[];
  /** The datasets of `datasets` that --interval alone does not leave out. */
  readonly anyInterval: readonly string[];
  /** The series that are given to `files` together: those of a pair (BTCUSD, BTCUSD_PERP), or those of a market, dataset and interval. */
  readonly groupBy: 'pair' | 'dataset';
  /** Throws usage errors for settings. */
  readonly files: (input: EngineInput) => EngineFiles;
  /** Lines about the files, for the end of an export. */
  readonly notes: readonly string[];
}

/** Options of COPY for a CSV file. */
export function csvForm({
  header = true,
  delimiter = "','",
  compression = 'none',
}: { header?: boolean; delimiter?: string; compression?: string } = {}): string {
  return `FORMAT csv, HEADER ${header}, DELIMITER ${delimiter}, COMPRESSION ${compression}`;
}

/** The days on which any of the sources has objects, ascending. `after`: rows may lie on this many days after an object. */
export function daysOf(sources: readonly RowSource[], after = 0): number[] {
  const days = new Set<number>();
  for (const { files, range } of sources)
    for (const file of files) {
      const missing = new Set(file.missing);
      for (let held = file.days.from; held < file.days.to; held += 1)
        for (let day = held; day <= held + after && !missing.has(held); day += 1)
          if (day >= (range.from ?? day) && day < (range.to ?? Infinity)) days.add(day);
    }
  return [...days].sort((a, b) => a - b);
}

/** The part of a source on one day. `before`: also the rows of this many days before. */
export function onDay(source: RowSource, day: number, before = 0): RowSource {
  const range = { from: day - before, to: day + 1 };
  // A row can lie up to a day outside of the period of its object.
  const files = source.files.filter(({ days }) => days.from <= range.to && days.to >= range.from);
  return { ...source, range, files };
}

/** One file for each path: the one with the most days, of equally many days the first. A series that no file has is refused if it has days that the file of its path lacks. */
export function oneForEachPath(candidates: readonly ExportFile[]): EngineFiles {
  const all = candidates.map((file) => ({ file, days: daysOf(file.sources) }));
  const chosen = new Map<string, (typeof all)[number]>();
  for (const one of all.toSorted((a, b) => b.days.length - a.days.length))
    if (!chosen.has(one.file.path)) chosen.set(one.file.path, one);
  const files = [...chosen.values()].map(({ file }) => file);
  const written = new Set(files.flatMap(({ sources }) => sources.map(({ series }) => series)));
  const refused = new Map<Series, Refused>();
  for (const { file, days } of all) {
    const other = chosen.get(file.path);
    const [{ series } = {}, { series: of } = {}] = [file.sources[0], other?.file.sources[0]];
    if (series === undefined || of === undefined || written.has(series)) continue;
    const own = new Set(other?.days);
    if (days.every((day) => own.has(day))) continue;
    const reason = `${seriesName(of)} goes to the same file, which lacks days that only this series has`;
    refused.set(series, { series, reason });
  }
  return { files, refused: [...refused.values()] };
}
