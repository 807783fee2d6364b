/** The SELECT of the files of a table that have one form. */
import { zonelessExpression } from '../../convert/columns.js';
import { readHeader } from '../../convert/inspect-rows.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import type { LakeFile } from './lake-file.js';

interface Part {
  readonly values: readonly string[];
  readonly files: readonly LakeFile[];
  readonly reader: (list: string) => string;
}

export interface ViewColumn {
  readonly name: string;
  readonly type: string;
}

export const hasZonedTimes = (files: readonly LakeFile[]): boolean => files.every(hasZone);

const hasZone = ({ settings }: LakeFile): boolean =>
  settings.format === 'parquet' && settings.timestamps === 'utc';

const isTime = (column?: ViewColumn): boolean => column?.type.startsWith('TIMESTAMP') === true;

/** If only some files have times with a time zone, their times lose it: the columns of a view have one type. */
export function parquetParts(files: readonly LakeFile[], columns: readonly ViewColumn[] | undefined): Part[] {
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
export async function byShape(files: readonly LakeFile[]): Promise<Map<string, CsvShape>> {
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

export function csvPart(
  { header, files, timestamps }: CsvShape,
  columns: readonly ViewColumn[] | undefined,
): Part {
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
