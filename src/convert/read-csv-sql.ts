/** The SQL that reads, checks and converts the cells of a published CSV. */
import type { ColumnSpec } from '../exchange/facts.js';
import { readType, writtenColumns, convertedExpression, legalExpression } from './columns.js';
import type { SqlContext } from './conversion.js';
import { quoteName, quoteText, quotePath } from './sql.js';

export const LEGAL = quoteName('.legal');

export interface CsvFile {
  readonly path: string;
  readonly headerLines: number;
}

/** The default of the reader is eight times larger, and is allocated at once even for short files. */
const SMALL_BUFFER_BYTES = 4 * 1024 * 1024;

/** `key`: a column of times whose cells are proven to be integers, or dates and times without a fraction. */
export function readPublished(
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

export const convertedList = ({ spec, settings }: SqlContext, key?: ColumnSpec): string =>
  writtenColumns(spec)
    .map((column) => {
      const name = quoteName(column.name);
      const isTimestamp = column === key && checkedType(column) === 'TIMESTAMP';
      return `${isTimestamp ? name : convertedExpression(column, settings)} AS ${name}`;
    })
    .join(', ');

/** True for a row whose cells are all valid, apart from the proven key; never NULL. */
export function legalCondition({ spec, series }: SqlContext, key?: ColumnSpec): string {
  const others = spec.columns.filter((column) => column !== key);
  return others.map((column) => legalExpression(column, series.symbol)).join(' AND ');
}

/** The clause that ends a statement at the first invalid cell, and at the first row for which `sound`, which is never NULL, is false. */
export const refusal = (context: SqlContext, key?: ColumnSpec, sound = 'true'): string =>
  `WHERE CASE WHEN ${legalCondition(context, key)} AND ${sound} THEN true ELSE error('a cell does not match the type of its column') END`;
