/** The SQL of a conversion. Tables: `rows` (new), `kept` (from the file that is added to). */
import type { ObjectLine } from '../lake/manifest.js';
import type { Conversion } from './conversion.js';
import {
  converted,
  isLegal,
  readOurs,
  readType,
  rendered,
  reread,
  sortable,
  writtenColumns,
} from './columns.js';
import { quoteName, quoteText } from './sql.js';

const ORDINAL = quoteName('.ordinal');
const NUMBER = quoteName('.number');
const LEGAL = quoteName('.legal');

type Declared = Pick<Conversion, 'spec' | 'settings' | 'series' | 'csvPath' | 'targetPath' | 'kept'>;

/** Ordinal of an object by the number of its row, from the cumulated row counts. */
function ordinalCase(rowCounts: readonly number[], ordinals: readonly number[]): string {
  let end = 0;
  const arms = rowCounts.map((rows, index) => {
    end += rows;
    return `WHEN ${NUMBER} <= ${end} THEN ${ordinals[index] ?? 0}`;
  });
  return `CASE ${arms.join(' ')} END`;
}

/** The CSV reader and `row_number` without a window order keep the order of the file. */
export function createRows(
  declared: Declared,
  rowCounts: readonly number[],
  ordinals: readonly number[],
): string {
  const { spec, settings, series } = declared;
  const types = spec.columns
    .map((column) => `${quoteText(column.name)}: '${readType(column, settings)}'`)
    .join(', ');
  const values = writtenColumns(spec).map(
    (column) => `${converted(column, settings)} AS ${quoteName(column.name)}`,
  );
  const legal = spec.columns.map((column) => isLegal(column, series.symbol)).join(' AND ');
  const reader = `read_csv(${quoteText(declared.csvPath)}, auto_detect = false, header = false, delim = ',', quote = '"', escape = '"', nullstr = '', new_line = '\\n', strict_mode = true, hive_partitioning = false, columns = {${types}})`;
  return `CREATE OR REPLACE TEMP TABLE rows AS
    SELECT ${values.join(', ')}, ${legal} AS ${LEGAL}, ${ordinalCase(rowCounts, ordinals)} AS ${ORDINAL}, ${NUMBER}
    FROM (SELECT *, row_number() OVER () AS ${NUMBER} FROM ${reader})`;
}

export function createKept(
  declared: Declared,
  kept: { file: string; lines: readonly ObjectLine[] },
  ordinals: readonly number[],
): string {
  const { spec, settings } = declared;
  const values = writtenColumns(spec).map((column) => reread(column, settings));
  const counts = kept.lines.map((line) => line.rows ?? 0);
  return `CREATE OR REPLACE TEMP TABLE kept AS
    SELECT ${values.join(', ')}, ${ordinalCase(counts, ordinals)} AS ${ORDINAL}, ${NUMBER}
    FROM (SELECT *, row_number() OVER () AS ${NUMBER} FROM ${readOurs(kept.file, settings.format, spec)})`;
}

/** Per object: rows, first and last time, wrong rows, and rows that do not come strictly after the row before. */
export function statsQuery({ spec }: Declared): string {
  const time = quoteName(
    spec.columns.find((column) => column.type === 'time' || column.type === 'datetime')?.name ?? '',
  );
  const keys = sortColumns(spec).map(sortable);
  const key = keys.length === 1 ? (keys[0] ?? '') : `row(${keys.join(', ')})`;
  return `SELECT ${ORDINAL} AS ord, count(*) AS rows, min(${time}) AS first, max(${time}) AS last,
      count_if(NOT ${LEGAL}) AS wrong, count_if(previous IS NOT NULL AND NOT (key > previous)) AS unordered
    FROM (SELECT *, lag(key) OVER () AS previous FROM (SELECT *, ${key} AS key FROM rows))
    GROUP BY ${ORDINAL} ORDER BY min(${NUMBER})`;
}

function sortColumns(spec: Declared['spec']): Declared['spec']['columns'] {
  return spec.sort.map((name) => {
    const column = spec.columns.find((candidate) => candidate.name === name);
    if (column === undefined) throw new RangeError(`sort column ${name} is not declared`);
    return column;
  });
}

/** Rows of each new object after exact duplicates are dropped. */
export function distinctQuery({ spec }: Declared): string {
  return `SELECT ord, count(*) AS rows FROM (SELECT DISTINCT ${names(spec)}, ${ORDINAL} AS ord FROM rows) GROUP BY ord`;
}

/** Rows of the file, and how many of them are exact duplicates across objects. */
export function totalsQuery(declared: Declared): string {
  const all = allRows(declared);
  const distinct = declared.settings.asPublished
    ? '0'
    : `count(*) - (SELECT count(*) FROM (SELECT DISTINCT ${names(declared.spec)} FROM (${all})))`;
  return `SELECT count(*) AS rows, ${distinct} AS across FROM (${all})`;
}

function names(spec: Declared['spec']): string {
  return writtenColumns(spec)
    .map((column) => quoteName(column.name))
    .join(', ');
}

function allRows({ spec, settings, kept }: Declared): string {
  const columns = names(spec);
  const own = settings.asPublished
    ? `SELECT ${columns}, ${ORDINAL}, ${NUMBER} FROM rows`
    : `SELECT DISTINCT ${columns}, ${ORDINAL}, 0 AS ${NUMBER} FROM rows`;
  return kept === undefined ? own : `${own} UNION ALL SELECT ${columns}, ${ORDINAL}, ${NUMBER} FROM kept`;
}

/** A total order: the sort columns, then every other column. */
function totalOrder({ spec, settings }: Declared): string {
  if (settings.asPublished) return `${ORDINAL}, ${NUMBER}`;
  const leading = sortColumns(spec);
  const others = writtenColumns(spec).filter((column) => !leading.includes(column));
  return [...leading, ...others].map((column) => `${sortable(column)} NULLS FIRST`).join(', ');
}

export function copyStatement(declared: Declared, how: { isOrdered: boolean; provenance: string }): string {
  const { spec, settings, targetPath } = declared;
  const columns = writtenColumns(spec)
    .map((column) => rendered(column, settings))
    .join(', ');
  const source = how.isOrdered
    ? 'rows'
    : `(SELECT * FROM (${allRows(declared)}) ORDER BY ${totalOrder(declared)})`;
  const format =
    settings.format === 'csv'
      ? 'FORMAT csv, HEADER true'
      : `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PARQUET_VERSION v2, KV_METADATA {cryptodl: ${quoteText(how.provenance)}}`;
  return `COPY (SELECT ${columns} FROM ${source}) TO ${quoteText(targetPath)} (${format})`;
}

export function rowsInParquet(file: string): string {
  return `SELECT sum(num_rows)::BIGINT AS rows FROM parquet_file_metadata(${quoteText(file)})`;
}
