/** Writes the SELECT and the CREATE VIEW statement of a table: all of its files, with the same columns for each. */
import { sep } from 'node:path';
import { identityOf, instantExpression, writtenColumns, zonelessExpression } from '../../convert/columns.js';
import { readHeader } from '../../convert/inspect-rows.js';
import { quoteName, quotePath, quoteText, timestampLiteral } from '../../convert/sql.js';
import { startOfDay } from '../../model/calendar.js';
import type { Market, Series } from '../../model/task.js';
import type { ColumnSpec } from '../../exchange/facts.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import type { LakeFile } from './lake-file.js';
import type { DayRange } from './spans.js';

export interface LakeTable {
  readonly market: Market;
  readonly dataset: string;
  readonly hasInterval: boolean;
  readonly files: readonly LakeFile[];
  /** Undefined for a dataset that this version does not know. */
  readonly spec: DatasetSpec | undefined;
}

/** `um_klines` */
export const tableName = ({ market, dataset }: Pick<Series, 'market' | 'dataset'>): string =>
  `${market}_${dataset}`;

/** The view of the rows of the range. `isShown`: for people, with one file per line. Rejects with a system error for a CSV that cannot be read. */
export async function viewOf(table: LakeTable, range: Partial<DayRange>, isShown = false): Promise<string> {
  const rows = await rowsQuery(table, isShown);
  const shown = table.spec === undefined ? rows : withinRange(rows, table.files, table.spec, range);
  return `CREATE OR REPLACE VIEW ${quoteName(tableName(table))} AS\n  ${shown}`;
}

/** The SELECT of all rows of a table: its layers, and the columns of the dataset. Rejects with a system error for a CSV file that cannot be read. */
async function rowsQuery(table: LakeTable, isShown = false): Promise<string> {
  const of = (format: string): LakeFile[] => table.files.filter((file) => file.settings.format === format);
  const columns = columnsOf(table);
  const parts = [
    ...parquetParts(of('parquet'), columns),
    ...[...(await byShape(of('csv'))).values()].map((files) => csvPart(files, columns)),
  ];
  const layers = layersOf(table.hasInterval);
  const selects = parts.map(({ values, reader, files }) => {
    const paths = files.map(({ path }) => quotePath(path.split(sep).join('/')));
    const list = paths.join(isShown ? ',\n    ' : ', ');
    return `SELECT ${[...layers, ...values].join(', ')} FROM ${reader(`[${list}]`)}`;
  });
  return selects.join('\n  UNION ALL BY NAME ');
}

/** The SELECT of `rowsQuery`. Of several rows with one key, the first one in the order of the files counts. */
export async function uniqueRowsQuery(table: LakeTable, spec: DatasetSpec): Promise<string> {
  const all = await rowsQuery(table);
  if (!spec.hasKey || !table.files.some(({ mayRepeat }) => mayRepeat)) return all;
  const layers = ['symbol', ...(table.hasInterval ? ['interval'] : [])];
  const key = spec.sort.map((name) => identityOf(spec, quoteName(name)));
  const names = [...layers.map(quoteName), ...key];
  return `SELECT * EXCLUDE (place) FROM (SELECT *, row_number() OVER () AS place FROM (${all})) QUALIFY row_number() OVER (PARTITION BY ${names.join(', ')} ORDER BY place) = 1`;
}

/** Takes symbol and interval from the path. DuckDB's hive partitioning would also read folders above the lake. */
function layersOf(hasInterval: boolean): string[] {
  const symbol = String.raw`regexp_extract(filename, '/symbol=([^/]*)/[^/]*$', 1)`;
  const interval = String.raw`regexp_extract(filename, '/interval=([^/]*)/[^/]*/[^/]*$', 1)`;
  return [
    `url_decode(${symbol}) AS symbol`,
    ...(hasInterval ? [`url_decode(${interval}) AS "interval"`] : []),
  ];
}

/** Undefined for a dataset that this version does not know; its columns then come from the files. */
function columnsOf({ files, spec }: LakeTable): ViewColumn[] | undefined {
  if (spec === undefined) return undefined;
  const time = hasZonedTimes(files) ? 'TIMESTAMPTZ' : 'TIMESTAMP';
  const types: Readonly<Record<ColumnSpec['type'], string>> = {
    time,
    datetime: time,
    date: 'DATE',
    hour: 'BIGINT',
    integer: 'BIGINT',
    flag: 'BOOLEAN',
    number: hasTextNumbers(files) ? 'VARCHAR' : 'DOUBLE',
    text: 'VARCHAR',
    symbol: 'VARCHAR',
  };
  return writtenColumns(spec).map(({ name, type }) => ({ name, type: types[type] }));
}

/** Whether the relation of these files has numbers as text with every digit; else they are doubles. */
export const hasTextNumbers = (files: readonly LakeFile[]): boolean =>
  files.every(({ settings }) => settings.format === 'parquet' && settings.numbers === 'string');

/** DuckDB skips row groups where a column is compared with a literal of its own type. */
export function withinRange(
  rows: string,
  files: readonly LakeFile[],
  spec: DatasetSpec,
  { from, to }: Partial<DayRange>,
): string {
  const time = instantExpression(spec);
  const isZoned =
    hasZonedTimes(files) && spec.columns.some(({ type }) => type === 'time' || type === 'datetime');
  const literal = (day: number): string => timestampLiteral(startOfDay(day, spec), isZoned);
  const conditions = [
    ...(from === undefined ? [] : [`${time} >= ${literal(from)}`]),
    ...(to === undefined ? [] : [`${time} < ${literal(to)}`]),
  ];
  return conditions.length === 0 ? rows : `SELECT * FROM (${rows}) WHERE ${conditions.join(' AND ')}`;
}

/** The SELECT of the files of a table that have one form. */
interface Part {
  readonly values: readonly string[];
  readonly files: readonly LakeFile[];
  readonly reader: (list: string) => string;
}

interface ViewColumn {
  readonly name: string;
  readonly type: string;
}

export const hasZonedTimes = (files: readonly LakeFile[]): boolean => files.every(hasZone);

const hasZone = ({ settings }: LakeFile): boolean =>
  settings.format === 'parquet' && settings.timestamps === 'utc';

const isTime = (column?: ViewColumn): boolean => column?.type.startsWith('TIMESTAMP') === true;

/** If only some files have times with a time zone, their times lose it: the columns of a view have one type. */
function parquetParts(files: readonly LakeFile[], columns: readonly ViewColumn[] | undefined): Part[] {
  if (columns === undefined) return files.length === 0 ? [] : [parquetPart(files, undefined)];
  const [zoned, others] = [files.filter(hasZone), files.filter((file) => !hasZone(file))];
  const inFile = columns.map((column) => (isTime(column) ? { ...column, type: 'TIMESTAMPTZ' } : column));
  return [
    ...(others.length === 0 ? [] : [parquetPart(others, columns)]),
    ...(zoned.length === 0 ? [] : [{ ...parquetPart(zoned, inFile), values: columns.map(zonelessValue) }]),
  ];
}

function zonelessValue({ name, type }: ViewColumn): string {
  return type === 'TIMESTAMP' ? `${zonelessExpression(name)} AS ${quoteName(name)}` : quoteName(name);
}

/** With a declared schema, DuckDB finds the columns without opening every file. With thousands of files, opening all takes long. */
function parquetPart(files: readonly LakeFile[], columns: readonly ViewColumn[] | undefined): Part {
  const fields = columns?.map(
    ({ name, type }) =>
      `${quoteText(name)}: {name: ${quoteText(name)}, type: ${quoteText(type)}, default_value: NULL}`,
  );
  const shape = fields === undefined ? 'union_by_name = true' : `schema = MAP {${fields.join(', ')}}`;
  return {
    values: columns?.map(({ name }) => quoteName(name)) ?? ['* EXCLUDE (filename)'],
    files,
    reader: (list) => `read_parquet(${list}, ${shape}, filename = true, hive_partitioning = false)`,
  };
}

interface CsvShape {
  readonly header: readonly string[];
  readonly files: LakeFile[];
  readonly timestamps: LakeFile['settings']['timestamps'];
}

/** Groups files by their header and by the form of their times. Files from before a column was added lack the column. */
async function byShape(files: readonly LakeFile[]): Promise<Map<string, CsvShape>> {
  const shapes = new Map<string, CsvShape>();
  for (const file of files) {
    const header = await readHeader(file.path);
    const { timestamps } = file.settings;
    const id = `${timestamps} ${header}`;
    const shape = shapes.get(id) ?? { header: header.split(','), files: [], timestamps };
    shape.files.push(file);
    shapes.set(id, shape);
  }
  return shapes;
}

function csvPart({ header, files, timestamps }: CsvShape, columns: readonly ViewColumn[] | undefined): Part {
  const known = new Map(columns?.map((column) => [column.name, column]));
  const isEpoch = timestamps === 'us' || timestamps === 'ms';
  const read = header.map((name) => {
    const column = known.get(name);
    const type = isTime(column) ? (isEpoch ? 'BIGINT' : 'VARCHAR') : (column?.type ?? 'VARCHAR');
    return `${quoteText(name)}: ${quoteText(type)}`;
  });
  const values = header.map((name) =>
    isTime(known.get(name))
      ? `${instant(quoteName(name), timestamps)} AS ${quoteName(name)}`
      : quoteName(name),
  );
  return {
    values,
    files,
    reader: (list) =>
      `read_csv(${list}, auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', nullstr = '', columns = {${read.join(', ')}}, filename = true, hive_partitioning = false)`,
  };
}

function instant(name: string, timestamps: CsvShape['timestamps']): string {
  if (timestamps === 'us') return `make_timestamp(${name})`;
  return timestamps === 'ms' ? `make_timestamp(${name} * 1000)` : `CAST(rtrim(${name}, 'Z') AS TIMESTAMP)`;
}
