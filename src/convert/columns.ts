/** SQL expressions that read, check, convert and write each declared column. */
import type { Settings } from '../model/task.js';
import type { ColumnSpec } from '../exchange/facts.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import { quoteName, quoteText } from './sql.js';

/** Epoch values: 13 digits are milliseconds, 16 digits are microseconds. */
export const MS_RANGE = [1e12, 1e13] as const;
export const US_RANGE = [1e15, 1e16] as const;
/** A double represents all integers up to this one exactly. */
const MAX_INTEGER = Number.MAX_SAFE_INTEGER;
/** Checked because the cast of DuckDB also accepts `2024/01/15`, short years and time zones. */
const DATE = '2\\d{3}-\\d{2}-\\d{2}';
const DATETIME = `${DATE}([ T]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d)?`;

/** Quotes and commas can come from quoted cells. No text column of the archive contains any of these characters. */
const NOT_IN_TEXT = '[[:cntrl:]",\\x{FFFD}]';

/** Whether numbers are stored as the published text. */
export const keepsText = (settings: Settings): boolean =>
  settings.format === 'csv' || settings.numbers === 'string';

/** Columns that are written to the file. The symbol is not, because it is in the path. */
export const writtenColumns = (spec: DatasetSpec): ColumnSpec[] =>
  spec.columns.filter((column) => column.type !== 'symbol');

/** The SQL type with which the CSV reader reads a cell. No cell is read as an integer, because an integer type rounds `1.5` to 2. */
export function readType({ type }: ColumnSpec, settings: Settings): 'DOUBLE' | 'VARCHAR' {
  const isNumeric = type === 'number' || type === 'integer' || type === 'hour';
  return type === 'time' || (isNumeric && !keepsText(settings)) ? 'DOUBLE' : 'VARCHAR';
}

/** Expression that converts a cell to its value in the relation `rows` and in Parquet files. */
export function convertedExpression(column: ColumnSpec, settings: Settings): string {
  const name = quoteName(column.name);
  switch (column.type) {
    case 'time':
      return `make_timestamp(CAST(CASE WHEN ${name} >= ${US_RANGE[0]} THEN ${name} ELSE ${name} * 1000 END AS BIGINT))`;
    case 'datetime':
      return `TRY_CAST(${trimmed(name)} AS TIMESTAMP)`;
    case 'date':
      return `TRY_CAST(${trimmed(name)} AS DATE)`;
    case 'integer':
    case 'hour':
      if (settings.format === 'csv') return trimmed(name);
      return `CAST(TRY_CAST(${name} AS DOUBLE) AS BIGINT)`;
    case 'number':
      return keepsText(settings) ? trimmed(name) : name;
    case 'flag':
      return `CASE ${name} WHEN 'true' THEN true WHEN 'false' THEN false ELSE lower(trim(${name}, ' ')) = 'true' END`;
    case 'text':
    case 'symbol':
      return name;
  }
}

/** Trims spaces. Few cells have any, and checking for them is faster than copying every cell. */
const trimmed = (name: string): string =>
  `CASE WHEN ${name} LIKE ' %' OR ${name} LIKE '% ' THEN trim(${name}, ' ') ELSE ${name} END`;

/** Expression that is true for a valid cell; never NULL. */
export function legalExpression(column: ColumnSpec, symbol: string): string {
  const name = quoteName(column.name);
  const number = `TRY_CAST(${name} AS DOUBLE)`;
  const whole = `${number} = floor(${number})`;
  const whenPresent = {
    time: `((${name} >= ${MS_RANGE[0]} AND ${name} < ${MS_RANGE[1]}) OR (${name} >= ${US_RANGE[0]} AND ${name} < ${US_RANGE[1]})) AND ${name} = floor(${name})`,
    datetime: `TRY_CAST(${trimmed(name)} AS TIMESTAMP) IS NOT NULL AND regexp_full_match(${trimmed(name)}, ${quoteText(DATETIME)})`,
    date: `TRY_CAST(${trimmed(name)} AS DATE) IS NOT NULL AND regexp_full_match(${trimmed(name)}, ${quoteText(DATE)})`,
    hour: `${number} BETWEEN 0 AND 23 AND ${whole}`,
    // DuckDB sorts Infinity and NaN above all numbers, so the comparison rejects them.
    integer: `abs(${number}) <= ${MAX_INTEGER} AND ${whole}`,
    number: `isfinite(${number})`,
    flag: `CASE WHEN ${name} IN ('true', 'false') THEN true ELSE lower(trim(${name}, ' ')) IN ('true', 'false') END`,
    text: `NOT regexp_matches(${name}, ${quoteText(NOT_IN_TEXT)})`,
    symbol: `${name} = ${quoteText(symbol)}`,
  }[column.type];
  return `coalesce(${whenPresent}, ${column.nullable ? `${name} IS NULL` : 'false'})`;
}

/** Expression that orders rows by value, also for numbers stored as text. */
export function sortExpression(column: ColumnSpec): string {
  const name = quoteName(column.name);
  if (column.type === 'integer' || column.type === 'hour') return `CAST(${name} AS BIGINT)`;
  return column.type === 'number' ? `CAST(${name} AS DOUBLE)` : name;
}

/** Expression for the minute at which a row was scheduled, see `hoursSinceLast`; for other datasets the time itself. */
export const identityOf = ({ hoursSinceLast }: DatasetSpec, time: string): string =>
  hoursSinceLast === undefined ? time : `date_trunc('minute', ${time} + INTERVAL 30 SECOND)`;

/** Expression for the time of a row, from converted columns. Throws a RangeError for a dataset without time columns. */
export function instantExpression(spec: DatasetSpec): string {
  const of = (...types: ColumnSpec['type'][]): string | undefined => {
    const column = spec.columns.find(({ type }) => types.includes(type));
    return column === undefined ? undefined : quoteName(column.name);
  };
  const instant = of('time', 'datetime');
  if (instant !== undefined) return instant;
  const date = of('date');
  if (date === undefined) throw new RangeError(`${spec.name} has no time column`);
  const hour = of('hour');
  return `(CAST(${date} AS TIMESTAMP)${hour === undefined ? '' : ` + to_hours(CAST(${hour} AS BIGINT))`})`;
}

const isZoned = ({ format, timestamps }: Settings): boolean => format === 'parquet' && timestamps === 'utc';

/** Expression for the written value: CSV formats times, and Parquet may add the time zone. No conversion depends on the local time zone. */
export function renderedExpression(column: ColumnSpec, settings: Settings): string {
  const name = quoteName(column.name);
  const isTime = column.type === 'time' || column.type === 'datetime';
  if (isZoned(settings) && isTime) return `make_timestamptz(epoch_us(${name})) AS ${name}`;
  if (settings.format !== 'csv' || !isTime) return name;
  if (settings.timestamps === 'us') return `epoch_us(${name}) AS ${name}`;
  if (settings.timestamps === 'ms') return `epoch_ms(${name}) AS ${name}`;
  return `strftime(${name}, '%Y-%m-%dT%H:%M:%S.%fZ') AS ${name}`;
}

/** The inverse of `renderedExpression`, for reading an existing file. */
export function rereadExpression(column: ColumnSpec, settings: Settings): string {
  const name = quoteName(column.name);
  const isTime = column.type === 'time' || column.type === 'datetime';
  if (isZoned(settings) && isTime) return `${zonelessExpression(column.name)} AS ${name}`;
  if (settings.format !== 'csv') return name;
  if (column.type === 'date') return `CAST(${name} AS DATE) AS ${name}`;
  if (column.type === 'flag') return `CAST(${name} AS BOOLEAN) AS ${name}`;
  if (!isTime) return name;
  if (settings.timestamps === 'us') return `make_timestamp(CAST(${name} AS BIGINT)) AS ${name}`;
  if (settings.timestamps === 'ms') return `make_timestamp(CAST(${name} AS BIGINT) * 1000) AS ${name}`;
  return `CAST(rtrim(${name}, 'Z') AS TIMESTAMP) AS ${name}`;
}

/** Expression for the TIMESTAMP in UTC of a column with a time zone. */
export const zonelessExpression = (name: string): string => `make_timestamp(epoch_us(${quoteName(name)}))`;
