/** The files of an export, before they are written: a SELECT over rows of the lake, and the form of the file. */
import { filesOfRange, type LakeFile } from '../../lake/catalogue/lake-file.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { instantExpression } from '../../convert/columns.js';
import { quoteName } from '../../convert/sql.js';
import { eachDay } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import type { FlagName, Options } from '../../plan/options/flags.js';
import type { Assets } from '../../exchange/pairs.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';

export interface SeriesRows {
  readonly series: Series;
  readonly spec: DatasetSpec;
  /** All files of the series that may have rows of the range, and others. Ordered by days. */
  readonly files: readonly LakeFile[];
  /** Only rows with a time on these days. */
  readonly range: Partial<DayRange>;
}

export interface ExportFile {
  /** Relative to the target, with `/`. */
  readonly path: string;
  /** At least one. */
  readonly sources: readonly SeriesRows[];
  /** SQL of the rows in their order, part of the recipe. The rows of the sources are `r0`, `r1` and so on. It may use `MACROS`. */
  readonly select: string;
  readonly form: {
    /** Options of COPY. */
    readonly copy: string;
    /** A column with nanoseconds whose times are marked as UTC. */
    readonly utc?: string;
    /** The file is a zip with this as the only member. */
    readonly member?: string;
  };
}

export interface Refused {
  readonly series: Series;
  readonly reason: string;
  /** The lake is damaged, or lacks the data: the export fails. */
  readonly isFault?: true;
}

export type ProgramFlag = 'columns' | 'delimiter' | 'mark-interval' | 'one-file' | 'time-format';

export interface ProgramInput {
  readonly exchange: Exchange;
  /** Series of one pair, or of one dataset; bars come last. */
  readonly sources: readonly SeriesRows[];
  readonly options: Options<ProgramFlag>;
  /** Assets of symbols, from a saved answer of exchangeInfo. */
  readonly assets: ReadonlyMap<string, Assets>;
}

/** The layout of a program that reads the files. */
export interface ExportProgram {
  readonly name: string;
  /** The datasets that it has files for; empty: all. */
  readonly datasets: readonly string[];
  /** The datasets of `datasets` that are exported only if --dataset names them. */
  readonly onlyNamed?: readonly string[];
  /** The datasets of `datasets` that --interval alone does not leave out. */
  readonly anyInterval?: readonly string[];
  /** The flags that only this program reads. */
  readonly flags?: readonly FlagName[];
  /** The series that are given to `files` together: those of a pair (BTCUSD, BTCUSD_PERP), or those of a market, dataset and interval. */
  readonly groupBy: 'pair' | 'dataset';
  /** Several files may have one path, see `oneForEachPath`. Throws usage errors for settings. */
  readonly files: (input: ProgramInput) => readonly (ExportFile | Refused)[];
  /** The text that is printed in place of files. `sources`: those of its files, at least one. */
  readonly script?: (sources: readonly SeriesRows[], exchange: Exchange) => string;
  /** Lines about the files, for the end of an export. */
  readonly notes?: readonly string[];
}

/** The files of the lake that may have rows of a source. */
export const lakeFilesOf = (source: SeriesRows): LakeFile[] =>
  filesOfRange(source, source.spec, source.range);

/** Options of COPY for a CSV file. */
export const csvForm = ({ header = true, delimiter = "','", compression = 'none' } = {}): string =>
  `FORMAT csv, HEADER ${header}, DELIMITER ${delimiter}, COMPRESSION ${compression}`;

/** SQL. The ids of a symbol begin anew after a second listing, and those of several symbols tell nothing about time, so the time comes first. */
export const rowOrder = (spec: DatasetSpec): string =>
  [...new Set([instantExpression(spec), ...spec.sort.map(quoteName)])].join(', ');

/** The days of the ranges on which any of the sources has objects, ascending. `after`: rows may lie on this many days after an object. */
export function exportedDaysOf(sources: readonly SeriesRows[], after = 0): number[] {
  const days = sources.flatMap(({ files, range: { from = -Infinity, to = Infinity } }) =>
    files
      .flatMap((file) => eachDay(file.days).filter((day) => !file.missing.includes(day)))
      .flatMap((held) => eachDay({ from: held, to: held + after + 1 }))
      .filter((day) => day >= from && day < to),
  );
  return [...new Set(days)].sort((a, b) => a - b);
}

/** The part of a source on one day. `before`: also the rows of this many days before. */
export function onDay(source: SeriesRows, day: number, before = 0): SeriesRows {
  const range = { from: day - before, to: day + 1 };
  // Series may have a file for each of thousands of days.
  const near = source.files.filter(({ days }) => days.from <= range.to && days.to >= range.from);
  return { ...source, range, files: lakeFilesOf({ ...source, range, files: near }) };
}

/**
 * Macros for the SQL of files.
 * - `num(x)`: the text of a number, with its digits as the lake has them and without exponent. Of a DOUBLE, these are the fewest digits that
 *   give the same DOUBLE again. A DECIMAL has 38 digits, so the digits behind the point depend on the size of the number.
 * - `stamp(t, form)`: a time in UTC by a pattern of strftime.
 * - `side(is_buyer_maker)`: the side of the taker.
 */
export const MACROS = String.raw`
CREATE OR REPLACE TEMP MACRO num(x) AS CASE
  WHEN NOT contains(lower(x::VARCHAR), 'e') THEN
    CASE typeof(x) WHEN 'VARCHAR' THEN x::VARCHAR ELSE regexp_replace(x::VARCHAR, '\.0$', '') END
  WHEN abs(x::DOUBLE) >= 1e15 THEN x::VARCHAR::DECIMAL(38, 0)::VARCHAR
  WHEN abs(x::DOUBLE) >= 1 THEN rtrim(rtrim(x::VARCHAR::DECIMAL(38, 18)::VARCHAR, '0'), '.')
  ELSE rtrim(rtrim(x::VARCHAR::DECIMAL(38, 37)::VARCHAR, '0'), '.') END;
CREATE OR REPLACE TEMP MACRO stamp(t, form) AS strftime(make_timestamp(epoch_us(t)), form);
CREATE OR REPLACE TEMP MACRO side(is_buyer_maker) AS CASE WHEN is_buyer_maker THEN 'sell' ELSE 'buy' END`;
