/** The SQL that reads, checks and converts the cells of a published CSV. */
import type { ColumnSpec } from '../source/facts.js';
import {
  convertedExpression,
  legalExpression,
  presentExpression,
  readType,
  writtenColumns,
} from './columns.js';
import type { Conversion } from './conversion.js';
import { quoteName, quotePath, quoteText } from './sql.js';

type SqlContext = Pick<Conversion, 'spec' | 'settings' | 'series'>;

/** A CSV for the fast reader. */
export interface CsvFile {
  readonly path: string;
  readonly headerLines: number;
}

/** The default of the reader is eight times larger, and is allocated at once even for short files. */
const SMALL_BUFFER_BYTES = 4 * 1024 * 1024;

/** What is known about the rows of a CSV before the fast reader reads it. */
export interface Proven {
  /** A column of times whose cells are integers, or dates and times without a fraction. */
  readonly key: ColumnSpec;
  /** Whether every number that the reader accepts is finite. */
  readonly isFinite: boolean;
}

export function readPublished(
  { spec, settings }: SqlContext,
  { path, headerLines }: CsvFile,
  { isSmall = false, proven }: { readonly isSmall?: boolean; readonly proven?: Proven } = {},
): string {
  const types = spec.columns
    .map((column) => {
      const type = column === proven?.key ? checkedType(column) : readType(column, settings);
      return `${quoteText(column.name)}: '${type}'`;
    })
    .join(', ');
  const buffer = isSmall ? `, buffer_size = ${SMALL_BUFFER_BYTES}` : '';
  return `read_csv(${quotePath(path)}, auto_detect = false, header = false, skip = ${headerLines}, delim = ',', quote = '"', escape = '"', nullstr = '', new_line = '\\n', strict_mode = true, hive_partitioning = false${buffer}, columns = {${types}})`;
}

function checkedType({ type }: ColumnSpec): 'TIMESTAMP' | 'BIGINT' {
  return type === 'datetime' ? 'TIMESTAMP' : 'BIGINT';
}

/** The written columns with the types of the file. */
export function convertedList({ spec, settings }: SqlContext, proven?: Proven): string {
  return writtenColumns(spec)
    .map((column) => {
      const name = quoteName(column.name);
      const isTimestamp = column === proven?.key && checkedType(column) === 'TIMESTAMP';
      return `${isTimestamp ? name : convertedExpression(column, settings)} AS ${name}`;
    })
    .join(', ');
}

/** True for a row whose cells are all valid, apart from what is proven; never NULL. */
export function legalCondition({ spec, settings, series }: SqlContext, proven?: Proven): string {
  return spec.columns
    .filter((column) => column !== proven?.key)
    .map((column) =>
      proven?.isFinite === true && column.type === 'number' && readType(column, settings) === 'DOUBLE'
        ? presentExpression(column)
        : legalExpression(column, series.symbol),
    )
    .join(' AND ');
}

/** The clause that ends a statement at the first invalid cell, and at the first row for which `sound`, which is never NULL, is false. */
export function refusal(context: SqlContext, proven?: Proven, sound = 'true'): string {
  return `WHERE CASE WHEN ${legalCondition(context, proven)} AND ${sound} THEN true ELSE error('a cell does not match the type of its column') END`;
}
