/** The SQL of a conversion. Relations: `rows` (received objects), `kept` (rows of the existing file that stay), `sorted` (both, in order). */
import type { ObjectLine } from '../model/manifest-line.js';
import type { Format, Settings } from '../model/task.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import type { FileMetadata, SqlContext } from './conversion.js';
import {
  identityOf,
  instantExpression,
  renderedExpression,
  rereadExpression,
  sortExpression,
  writtenColumns,
  readType,
  convertedExpression,
  legalExpression,
} from './columns.js';
import { quoteName, quotePath, quoteText } from './sql.js';
import type { ColumnSpec } from '../exchange/facts.js';

/** Columns beside those of the dataset: the object of a row, whether its cells are valid, its place, and whether an equal row comes before it. */
export const ORDINAL = quoteName('.ordinal');
export const LEGAL = quoteName('.legal');
export const NUMBER = quoteName('.number');
export const DUPLICATE = quoteName('.duplicate');

/** Maps row numbers to objects. */
export interface RowOrdinals {
  /** Row count of each object, in file order. */
  readonly rowCounts: readonly number[];
  /** The number that identifies each object, in file order. */
  readonly ordinals: readonly number[];
}

/** Nested CASEs as a binary search: a flat CASE would evaluate each of its conditions for every row. */
function ordinalCase({ rowCounts, ordinals }: RowOrdinals): string {
  let last = 0;
  const ends = rowCounts.map((rows) => (last += rows));
  const within = (from: number, to: number): string => {
    if (to - from <= 1) return String(ordinals[from] ?? 0);
    const middle = Math.floor((from + to) / 2);
    return `CASE WHEN ${NUMBER} <= ${ends[middle - 1] ?? 0} THEN ${within(from, middle)} ELSE ${within(middle, to)} END`;
  };
  return within(0, rowCounts.length);
}

/** Parses one CSV into memory. A filter of invalid rows would take longer than a column that marks them. The CSV reader and `row_number` without a window order preserve the order of the file. */
export const createRows = (context: SqlContext, csv: CsvFile, origin: RowOrdinals): string =>
  `CREATE OR REPLACE TEMP TABLE rows AS
    SELECT ${convertedList(context)}, ${legalCondition(context)} AS ${LEGAL}, ${ordinalCase(origin)} AS ${ORDINAL}, ${NUMBER}
    FROM (SELECT *, row_number() OVER () AS ${NUMBER} FROM ${readPublished(context, csv, { isSmall: true })})`;

/**
 * Parses one CSV into the target file. The times of the column `key` are already checked, and all are different. The statement fails
 * at the first invalid cell of the other columns, and at a row that is not `sound`; its result has the number of rows as `Count`.
 */
export function copyPublished(
  context: SqlContext,
  csv: CsvFile,
  metadata: FileMetadata,
  { key, isOrdered, sound }: { key: ColumnSpec; isOrdered: boolean; sound: string },
): string {
  const rows = `SELECT ${convertedList(context, key)} FROM ${readPublished(context, csv, { isSmall: true, key })} ${refusal(context, key, sound)}`;
  return copyTo(context, `(${rows}${isOrdered ? '' : ` ORDER BY ${quoteName(key.name)}`})`, metadata);
}

/** Parses CSVs of any size into a Parquet file, which may become the target. The statement fails at the first invalid cell. */
export function stageRows(
  context: SqlContext,
  csvs: readonly CsvFile[],
  staged: { path: string; metadata: FileMetadata },
): string {
  const settings: Settings = { ...context.settings, format: 'parquet' };
  const columns = writtenColumns(context.spec).map((column) => renderedExpression(column, settings));
  const parts = csvs.map(
    (csv) => `SELECT ${convertedList(context)} FROM ${readPublished(context, csv)} ${refusal(context)}`,
  );
  return `COPY (SELECT ${columns.join(', ')} FROM (${parts.join(' UNION ALL ')})) TO ${quoteText(staged.path)} (${parquetFormat(staged.metadata)})`;
}

/** The relation `rows` over the file that `stageRows` wrote. */
export function viewStaged({ spec, settings }: SqlContext, path: string, origin: RowOrdinals): string {
  const staged: Settings = { ...settings, format: 'parquet' };
  const values = writtenColumns(spec).map((column) => rereadExpression(column, staged));
  return `CREATE OR REPLACE TEMP VIEW rows AS
    SELECT *, true AS ${LEGAL}, ${ordinalCase(origin)} AS ${ORDINAL}
    FROM (SELECT ${values.join(', ')}, file_row_number + 1 AS ${NUMBER}
          FROM read_parquet(${quotePath(path)}, hive_partitioning = false, file_row_number = true))`;
}

/** The relation `kept`. `ordinals`: those of the objects that stay. */
export function createKept(context: SqlContext, ordinals: readonly number[]): string {
  const { kept = [], replaced = [] } = context.existing ?? {};
  const rowCounts = kept.map((line) => line.rows ?? 0);
  const stays =
    replaced.length === 0 ? '' : `WHERE NOT (${isIn(timeSpans(replaced), instantExpression(context.spec))})`;
  return `CREATE OR REPLACE TEMP VIEW kept AS
    SELECT *, ${ordinalCase({ rowCounts, ordinals })} AS ${ORDINAL}
    FROM (SELECT *, row_number() OVER () AS ${NUMBER}
          FROM ${readExisting(context)} ${stays})`;
}

/** The rows of the existing file, with the same value types as in `rows`. */
export const readExisting = (context: Pick<SqlContext, 'spec' | 'settings' | 'existing'>): string =>
  readStoredRows(context, context.existing?.file ?? '');

/** The SELECT of these columns from all rows of the target: received ones, and those that stay. */
export function fromAll({ existing }: Pick<SqlContext, 'existing'>, columns: string): string {
  const relations = existing === undefined || existing.kept.length === 0 ? ['rows'] : ['rows', 'kept'];
  return relations.map((relation) => `SELECT ${columns} FROM ${relation}`).join(' UNION ALL ');
}

export const timeSpans = (lines: readonly ObjectLine[]): (readonly [first: string, last: string])[] =>
  lines.map(({ first = '', last = '' }) => [first, last]);

/** A condition: the time is in one of the spans, whose ends are included. */
export const isIn = (spans: readonly (readonly [first: string, last: string])[], time = 'instant'): string =>
  spans
    .map(([from, to]) => `${time} BETWEEN TIMESTAMP ${quoteText(from)} AND TIMESTAMP ${quoteText(to)}`)
    .join(' OR ');

/** The rows of a file of the lake, with the same value types as in `rows`. */
export function readStoredRows(
  { spec, settings }: Pick<SqlContext, 'spec' | 'settings'>,
  file: string,
): string {
  const values = writtenColumns(spec).map((column) => rereadExpression(column, settings));
  return `(SELECT ${values.join(', ')} FROM ${readLakeFile(file, settings.format, spec)})`;
}

/** A file of the lake without conversion; values of a CSV are text. */
function readLakeFile(file: string, format: Format, spec: DatasetSpec): string {
  if (format === 'parquet') return `read_parquet(${quotePath(file)}, hive_partitioning = false)`;
  const columns = writtenColumns(spec).map((column) => `${quoteText(column.name)}: 'VARCHAR'`);
  return `read_csv(${quotePath(file)}, auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', nullstr = '', strict_mode = true, hive_partitioning = false, columns = {${columns.join(', ')}})`;
}

/** Rows of the file and distinct sort keys. Equal numbers mean that there are no duplicates. */
export function keysQuery(context: SqlContext): string {
  const keys = fromAll(context, `${sortKey(context.spec)} AS key`);
  return `SELECT count(*) AS rows, count(DISTINCT key) AS keys FROM (${keys})`;
}

/** An expression that identifies a row; of several columns, a `row(…)`. */
export function sortKey(spec: DatasetSpec): string {
  const keys = sortColumns(spec).map((column) => identityOf(spec, sortExpression(column)));
  return keys.length === 1 ? (keys[0] ?? '') : `row(${keys.join(', ')})`;
}

export const sortColumns = (spec: DatasetSpec): ColumnSpec[] => spec.sort.map((name) => columnOf(spec, name));

export function columnOf({ columns }: DatasetSpec, name: string): ColumnSpec {
  const column = columns.find((candidate) => candidate.name === name);
  if (column === undefined) throw new RangeError(`column ${name} is not declared`);
  return column;
}

/** The quoted names of the written columns. */
export const names = (spec: DatasetSpec): string =>
  writtenColumns(spec)
    .map((column) => quoteName(column.name))
    .join(', ');

/** The COPY statement of a relation with the columns of the dataset, in its order. */
export function copyTo(
  { spec, settings, targetPath }: Pick<SqlContext, 'settings' | 'spec' | 'targetPath'>,
  source: string,
  metadata: FileMetadata,
): string {
  const columns = writtenColumns(spec)
    .map((column) => renderedExpression(column, settings))
    .join(', ');
  const format = settings.format === 'csv' ? 'FORMAT csv, HEADER true' : parquetFormat(metadata);
  return `COPY (SELECT ${columns} FROM ${source}) TO ${quoteText(targetPath)} (${format})`;
}

function parquetFormat(metadata: FileMetadata): string {
  const entries = Object.entries(metadata).map(([key, value]) => `${key}: ${quoteText(value)}`);
  return `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PARQUET_VERSION v2, KV_METADATA {${entries.join(', ')}}`;
}

export interface CsvFile {
  readonly path: string;
  readonly headerLines: number;
}

/** The default of the reader is eight times larger, and is allocated at once even for short files. */
const SMALL_BUFFER_BYTES = 4 * 1024 * 1024;

/** `key`: a column of times whose cells are proven to be integers, or dates and times without a fraction. */
function readPublished(
  { spec, settings }: SqlContext,
  { path, headerLines }: CsvFile,
  { isSmall = false, key }: { readonly isSmall?: boolean; readonly key?: ColumnSpec } = {},
): string {
  const types = spec.columns
    .map((column) => {
      const type = column === key ? checkedType(column) : readType(column, settings);
      return `${quoteText(column.name)}: '${type}'`;
    })
    .join(', ');
  const buffer = isSmall ? `, buffer_size = ${SMALL_BUFFER_BYTES}` : '';
  return `read_csv(${quotePath(path)}, auto_detect = false, header = false, skip = ${headerLines}, delim = ',', quote = '"', escape = '"', nullstr = '', new_line = '\\n', strict_mode = true, hive_partitioning = false${buffer}, columns = {${types}})`;
}

const checkedType = ({ type }: ColumnSpec): 'TIMESTAMP' | 'BIGINT' =>
  type === 'datetime' ? 'TIMESTAMP' : 'BIGINT';

const convertedList = ({ spec, settings }: SqlContext, key?: ColumnSpec): string =>
  writtenColumns(spec)
    .map((column) => {
      const name = quoteName(column.name);
      const isTimestamp = column === key && checkedType(column) === 'TIMESTAMP';
      return `${isTimestamp ? name : convertedExpression(column, settings)} AS ${name}`;
    })
    .join(', ');

/** True for a row whose cells are all valid, apart from the proven key; never NULL. */
function legalCondition({ spec, series }: SqlContext, key?: ColumnSpec): string {
  const others = spec.columns.filter((column) => column !== key);
  return others.map((column) => legalExpression(column, series.symbol)).join(' AND ');
}

/** The clause that ends a statement at the first invalid cell, and at the first row for which `sound`, which is never NULL, is false. */
const refusal = (context: SqlContext, key?: ColumnSpec, sound = 'true'): string =>
  `WHERE CASE WHEN ${legalCondition(context, key)} AND ${sound} THEN true ELSE error('a cell does not match the type of its column') END`;
