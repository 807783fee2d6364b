/** The SQL of a conversion. Relations: `rows` (received objects), `kept` (rows of the existing file that stay). */
import type { ObjectLine } from '../model/manifest-line.js';
import type { Format, Settings } from '../model/task.js';
import { rowSeconds } from '../exchange/exchange-spec.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import type { Conversion, FileMetadata } from './conversion.js';
import {
  convertedExpression,
  identityOf,
  instantExpression,
  legalExpression,
  readType,
  renderedExpression,
  rereadExpression,
  sortExpression,
  writtenColumns,
} from './columns.js';
import { offGridExpression } from './row-times.js';
import { quoteName, quotePath, quoteText } from './sql.js';
import type { ColumnSpec } from '../exchange/facts.js';

export const ORDINAL = quoteName('.ordinal');
export const NUMBER = quoteName('.number');
const LEGAL = quoteName('.legal');
const DUPLICATE = quoteName('.duplicate');

type SqlContext = Pick<Conversion, 'spec' | 'settings' | 'series' | 'targetPath' | 'existing'>;

/** Maps row numbers to objects. */
export interface Origin {
  /** Row count of each object, in file order. */
  readonly rowCounts: readonly number[];
  /** The number that identifies each object, in file order. */
  readonly ordinals: readonly number[];
}

/** Nested CASEs as a binary search: a flat CASE would evaluate each of its conditions for every row. */
function ordinalCase({ rowCounts, ordinals }: Origin): string {
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
export function createRows(context: SqlContext, csv: CsvFile, origin: Origin): string {
  return `CREATE OR REPLACE TEMP TABLE rows AS
    SELECT ${convertedList(context)}, ${legalCondition(context)} AS ${LEGAL}, ${ordinalCase(origin)} AS ${ORDINAL}, ${NUMBER}
    FROM (SELECT *, row_number() OVER () AS ${NUMBER} FROM ${readPublished(context, csv, { isSmall: true })})`;
}

/**
 * Parses one CSV into the target file. The times of the column `key` are already checked, and all are different. The statement fails
 * at the first invalid cell of the other columns, and at a row that is not `sound`; its result has the number of rows as `Count`.
 */
export function copyPublished(
  context: SqlContext,
  csv: CsvFile,
  {
    key,
    isOrdered,
    sound,
    metadata,
  }: { key: ColumnSpec; isOrdered: boolean; sound: string; metadata: FileMetadata },
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
export function viewStaged({ spec, settings }: SqlContext, path: string, origin: Origin): string {
  const staged: Settings = { ...settings, format: 'parquet' };
  const values = writtenColumns(spec).map((column) => rereadExpression(column, staged));
  return `CREATE OR REPLACE TEMP VIEW rows AS
    SELECT *, true AS ${LEGAL}, ${ordinalCase(origin)} AS ${ORDINAL}
    FROM (SELECT ${values.join(', ')}, file_row_number + 1 AS ${NUMBER}
          FROM read_parquet(${quotePath(path)}, hive_partitioning = false, file_row_number = true))`;
}

export function createKept(context: SqlContext, ordinals: readonly number[]): string {
  const { kept = [], replaced = [] } = context.existing ?? {};
  const rowCounts = kept.map((line) => line.rows ?? 0);
  const stays =
    replaced.length === 0 ? '' : `WHERE NOT (${isIn(spansOf(replaced), instantExpression(context.spec))})`;
  return `CREATE OR REPLACE TEMP VIEW kept AS
    SELECT *, ${ordinalCase({ rowCounts, ordinals })} AS ${ORDINAL}
    FROM (SELECT *, row_number() OVER () AS ${NUMBER}
          FROM ${readExisting(context)} ${stays})`;
}

/** The rows of the existing file, with the same value types as in `rows`. */
export function readExisting(context: Pick<SqlContext, 'spec' | 'settings' | 'existing'>): string {
  return readStoredRows(context, context.existing?.file ?? '');
}

function fromAll({ existing }: Pick<SqlContext, 'existing'>, columns: string): string {
  const relations = existing === undefined || existing.kept.length === 0 ? ['rows'] : ['rows', 'kept'];
  return relations.map((relation) => `SELECT ${columns} FROM ${relation}`).join(' UNION ALL ');
}

export function spansOf(lines: readonly ObjectLine[]): (readonly [first: string, last: string])[] {
  return lines.map(({ first = '', last = '' }) => [first, last]);
}

export function isIn(spans: readonly (readonly [first: string, last: string])[], time = 'instant'): string {
  return spans
    .map(([from, to]) => `${time} BETWEEN TIMESTAMP ${quoteText(from)} AND TIMESTAMP ${quoteText(to)}`)
    .join(' OR ');
}

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

/** Per object: rows, first and last time, invalid rows, rows off the grid, and rows that are not after the previous row. */
export function statsQuery({ spec, series }: SqlContext): string {
  const key = sortKey(spec);
  const ids = idsOf(spec);
  const counted =
    ids === undefined
      ? ''
      : `, min(low) AS first_id, max(low) AS last_id, min(range_low) AS range_first, max(range_high) AS range_last, count_if(range_low ${spec.sequence?.isGapless === true ? '<> range_before + 1' : '<= range_before'}) AS breaks`;
  const isPaced = isJudgedByRate(spec);
  const pause = isPaced ? ', max(abs(epoch_us(instant) - epoch_us(instant_before))) AS pause' : '';
  const bounds =
    spec.rate === undefined ? '' : ', epoch_us(min(instant)) AS first_us, epoch_us(max(instant)) AS last_us';
  const before = `${ids === undefined ? '' : ', lag(range_high) OVER () AS range_before'}${isPaced ? ', lag(instant) OVER () AS instant_before' : ''}`;
  const read =
    ids === undefined ? '' : `, ${ids.id} AS low, ${ids.from} AS range_low, ${ids.to} AS range_high`;
  return `SELECT ord, count(*) AS rows, min(instant) AS first, max(instant) AS last,
      count_if(NOT legal) AS wrong, count_if(${offGridExpression(spec, series)}) AS off_grid, count_if(previous IS NOT NULL AND NOT (key > previous)) AS unordered${counted}${pause}${bounds}
    FROM (SELECT *, lag(key) OVER () AS previous${before}
          FROM (SELECT ${ORDINAL} AS ord, ${NUMBER} AS number, ${LEGAL} AS legal, ${instantExpression(spec)} AS instant, ${key} AS key${read} FROM rows))
    GROUP BY ord ORDER BY min(number)`;
}

/** Whether the rate of the rows tells that some are missing between others. Ids that leave out none prove more. */
export function isJudgedByRate({ rate, sequence }: DatasetSpec): boolean {
  return rate !== undefined && sequence === undefined;
}

/** The times from row to row of an object that are at least `leastUs` long, in microseconds since the epoch. */
export function pausesQuery(
  spec: DatasetSpec,
  ordinal: number,
  { isOrdered, leastUs }: { readonly isOrdered: boolean; readonly leastUs: number },
): string {
  return `SELECT since, until
    FROM (SELECT until, lag(until) OVER (${isOrdered ? '' : 'ORDER BY until'}) AS since
          FROM (SELECT epoch_us(${instantExpression(spec)}) AS until FROM rows WHERE ${ORDINAL} = ${ordinal}))
    WHERE until - since >= ${leastUs}`;
}

/** Expressions for the id of a row, and for the first and last id of its range; undefined for a dataset whose ids prove nothing. */
function idsOf(spec: DatasetSpec): { id: string; from: string; to: string } | undefined {
  const { sequence } = spec;
  if (sequence === undefined) return undefined;
  const expression = (name: string): string => sortExpression(columnOf(spec, name));
  const { id, range: [from, to] = [id, id] } = sequence;
  return { id: expression(id), from: expression(from), to: expression(to) };
}

/**
 * The places of an object where ids are missing (`missing` above 0), with the times before and after, and the rows whose range overlaps an
 * earlier one (`missing` below 1), in the order of ids. `of`: the ids, or the ranges.
 */
function seamsOf(spec: DatasetSpec, ordinal: number, of: 'ids' | 'ranges'): string {
  const { id = '', from = '', to = '' } = idsOf(spec) ?? {};
  const [low, high] = of === 'ids' ? [id, id] : [from, to];
  return `(SELECT low - before - 1 AS missing, epoch_us(time_before) AS since, epoch_us(instant) AS until, low
    FROM (SELECT *, max(high) OVER earlier AS before, max(instant) OVER earlier AS time_before
          FROM (SELECT ${low} AS low, ${high} AS high, ${instantExpression(spec)} AS instant FROM rows WHERE ${ORDINAL} = ${ordinal})
          WINDOW earlier AS (ORDER BY low, high ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    WHERE low <> before + 1)`;
}

/** Missing ids of an object (of ranges without gaps: ids within them), and the times of at most `most` places where they are missing. */
export function missingIdsQuery(spec: DatasetSpec, ordinal: number, most: number): string {
  const seams = seamsOf(spec, ordinal, spec.sequence?.isGapless === true ? 'ranges' : 'ids');
  return `SELECT since, until, total FROM (SELECT *, sum(missing) OVER () AS total FROM ${seams} WHERE missing > 0) ORDER BY low LIMIT ${most}`;
}

export function overlappingQuery(spec: DatasetSpec, ordinal: number): string {
  return `SELECT count(*) FILTER (WHERE missing < 0) AS overlapping FROM ${seamsOf(spec, ordinal, 'ranges')}`;
}

/**
 * Ordinal and time of the rows of these objects, in microseconds since the epoch. Regular times: without exact duplicates, which ordered rows do not have.
 * A schedule: the scheduled minute, with the hours since the row before, in order of time. Others: the start of each hour with rows, because a month of trades has
 * too many rows for memory.
 */
export function timesQuery(
  { spec, series }: SqlContext,
  ordinals: readonly number[],
  isOrdered: boolean,
): string {
  const instant = instantExpression(spec);
  const own = `FROM rows WHERE ${ORDINAL} IN (${ordinals.join(', ')})`;
  if (rowSeconds(spec, series.interval) !== undefined) {
    const us = usOf(`epoch_us(${instant})`);
    return `SELECT ord, us FROM (SELECT ${isOrdered ? us : `DISTINCT ${names(spec)}, ${us}`}, ${ORDINAL} AS ord ${own})`;
  }
  const { hoursSinceLast } = spec;
  if (hoursSinceLast === undefined)
    return `SELECT DISTINCT ${ORDINAL} AS ord, ${usOf(`epoch_us(${instant}) // 3600000000 * 3600000000`)} ${own}`;
  const hours = `max(CAST(${quoteName(hoursSinceLast)} AS DOUBLE)) AS hours`;
  return `SELECT ${ORDINAL} AS ord, ${usOf(`epoch_us(${identityOf(spec, instant)})`)}, ${hours} ${own} GROUP BY ALL ORDER BY us`;
}

function usOf(time: string): string {
  return `CAST(${time} AS DOUBLE) AS us`;
}

/** Rows of the file and distinct sort keys. Equal numbers mean that there are no duplicates. */
export function keysQuery(context: SqlContext): string {
  const keys = fromAll(context, `${sortKey(context.spec)} AS key`);
  return `SELECT count(*) AS rows, count(DISTINCT key) AS keys FROM (${keys})`;
}

function sortKey(spec: DatasetSpec): string {
  const keys = sortColumns(spec).map((column) => identityOf(spec, sortExpression(column)));
  return keys.length === 1 ? (keys[0] ?? '') : `row(${keys.join(', ')})`;
}

function sortColumns(spec: DatasetSpec): ColumnSpec[] {
  return spec.sort.map((name) => columnOf(spec, name));
}

function columnOf({ columns }: DatasetSpec, name: string): ColumnSpec {
  const column = columns.find((candidate) => candidate.name === name);
  if (column === undefined) throw new RangeError(`column ${name} is not declared`);
  return column;
}

/** The quoted names of the written columns. */
export function names(spec: DatasetSpec): string {
  return writtenColumns(spec)
    .map((column) => quoteName(column.name))
    .join(', ');
}

/** A total order: with `asPublished` the published order, else the sort columns by value, then all columns. */
function totalOrder({ spec, settings }: SqlContext): string {
  if (settings.asPublished) return `${ORDINAL}, ${NUMBER}`;
  const leading = sortColumns(spec).map(sortExpression);
  const others = writtenColumns(spec)
    .map((column) => quoteName(column.name))
    .filter((name) => !leading.includes(name));
  return [...leading, ...others].map((expression) => `${expression} NULLS FIRST`).join(', ');
}

/** Writes the target from rows whose sort keys are unique. */
export function copyByKey(context: SqlContext, metadata: FileMetadata): string {
  const { spec } = context;
  const all = fromAll(context, names(spec));
  const keys = sortColumns(spec).map((column) => `${sortExpression(column)} NULLS FIRST`);
  return copyTo(context, `(SELECT * FROM (${all}) ORDER BY ${keys.join(', ')})`, metadata);
}

/** Where the sorted rows of a file are: in a Parquet file at this path if they are too many for memory, else in a table. */
type SortedPath = string | undefined;

/** Sorts the rows of the file, with the ordinal of each row and a mark for exact duplicates within its object. */
export function sortRows(context: SqlContext, path: SortedPath): string {
  const { spec, settings } = context;
  const columns = names(spec);
  const all = fromAll(context, `${columns}, ${ORDINAL}, ${NUMBER}`);
  const order = settings.asPublished ? totalOrder(context) : `${totalOrder(context)}, ${ORDINAL}, ${NUMBER}`;
  const isDuplicate = settings.asPublished ? 'false' : `same AND ${ORDINAL} = lag(${ORDINAL}) OVER ()`;
  const sorted = `SELECT ${columns}, ${ORDINAL}, ${NUMBER}, coalesce(${isDuplicate}, false) AS ${DUPLICATE}
      FROM (SELECT *, ${sameAsBefore(columns)} AS same FROM (SELECT * FROM (${all}) ORDER BY ${order}))`;
  if (path === undefined) return `CREATE OR REPLACE TEMP TABLE sorted AS ${sorted}`;
  return `COPY (${sorted}) TO ${quoteText(path)} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)`;
}

/** Whether a row equals the previous row; NULL equals NULL. */
function sameAsBefore(columns: string): string {
  return `row(${columns}) IS NOT DISTINCT FROM lag(row(${columns})) OVER ()`;
}

/**
 * Counts in the sorted rows, without marked duplicates, for each object: rows, rows equal to the previous row, and rows with the same key as
 * the previous row, which may be of another object, but other values.
 */
export function sortedCounts({ spec }: SqlContext, path: SortedPath): string {
  const key = sortKey(spec);
  return `SELECT ord, count(*) AS rows, count_if(same) AS across, count_if(NOT same AND same_key) AS disputed
    FROM (SELECT ${ORDINAL} AS ord, ${sameAsBefore(names(spec))} AS same,
            ${key} IS NOT DISTINCT FROM lag(${key}) OVER () AS same_key
          FROM ${relationOf(path)} WHERE NOT ${DUPLICATE})
    GROUP BY ord`;
}

/** Counts in the rows, without exact duplicates, for each object: rows that share the key of another row of the object. */
export function conflictsQuery({ spec }: SqlContext, path: SortedPath): string {
  // With `asPublished`, duplicates are not marked.
  return `SELECT ${ORDINAL} AS ord, count(*) - count(DISTINCT ${sortKey(spec)}) AS conflicts
    FROM (SELECT DISTINCT ${names(spec)}, ${ORDINAL} FROM ${relationOf(path)}) GROUP BY ord`;
}

/** Writes the target from the sorted rows. `isDisputed`: rows of one key have different values, and the first published one comes first. */
export function copySorted(
  context: SqlContext,
  path: SortedPath,
  { isDisputed, metadata }: { readonly isDisputed: boolean; readonly metadata: FileMetadata },
): string {
  const order = [...sortColumns(context.spec).map(sortExpression), ORDINAL, NUMBER].join(', ');
  return copyTo(
    context,
    `(SELECT * FROM ${relationOf(path)} WHERE NOT ${DUPLICATE}${isDisputed ? ` ORDER BY ${order}` : ''})`,
    metadata,
  );
}

function relationOf(path: SortedPath): string {
  return path === undefined ? 'sorted' : `read_parquet(${quotePath(path)}, hive_partitioning = false)`;
}

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

// The SQL that reads, checks and converts the cells of a published CSV.

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

function checkedType({ type }: ColumnSpec): 'TIMESTAMP' | 'BIGINT' {
  return type === 'datetime' ? 'TIMESTAMP' : 'BIGINT';
}

function convertedList({ spec, settings }: SqlContext, key?: ColumnSpec): string {
  return writtenColumns(spec)
    .map((column) => {
      const name = quoteName(column.name);
      const isTimestamp = column === key && checkedType(column) === 'TIMESTAMP';
      return `${isTimestamp ? name : convertedExpression(column, settings)} AS ${name}`;
    })
    .join(', ');
}

/** True for a row whose cells are all valid, apart from the proven key; never NULL. */
function legalCondition({ spec, series }: SqlContext, key?: ColumnSpec): string {
  const others = spec.columns.filter((column) => column !== key);
  return others.map((column) => legalExpression(column, series.symbol)).join(' AND ');
}

/** The clause that ends a statement at the first invalid cell, and at the first row for which `sound`, which is never NULL, is false. */
function refusal(context: SqlContext, key?: ColumnSpec, sound = 'true'): string {
  return `WHERE CASE WHEN ${legalCondition(context, key)} AND ${sound} THEN true ELSE error('a cell does not match the type of its column') END`;
}
