/** The schema of the Parquet files that the program writes, from the expressions that write them. */
import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../model/task.js';
import type { DatasetSpec } from '../source/venue.js';
import { convertedExpression, readType, renderedExpression, writtenColumns } from './columns.js';
import type { DuckDbSession } from './duckdb.js';
import { quoteName, quotePath } from './sql.js';

interface Written {
  readonly spec: DatasetSpec;
  readonly settings: Settings;
}

/** Whether a Parquet file has exactly the columns that the program writes with these settings: names, order and types. */
export async function hasWrittenSchema(
  session: DuckDbSession,
  { path, ...written }: Written & { readonly path: string },
): Promise<boolean> {
  const file = `read_parquet(${quotePath(path)}, hive_partitioning = false)`;
  const stored = await session.rows(schemaQuery(`SELECT * FROM ${file}`));
  if (!isDeepStrictEqual(stored, await session.rows(schemaQuery(writtenQuery(written))))) return false;
  // DuckDB reads times in milliseconds and those of INT96 like times in microseconds.
  const others = await session.rows(`SELECT name FROM parquet_schema(${quotePath(path)})
    WHERE type = 'INT96' OR converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=MilliSeconds()%'`);
  return others.length === 0;
}

/** One row of blank cells, read, converted and rendered like those of an archived CSV. */
function writtenQuery({ spec, settings }: Written): string {
  const columns = writtenColumns(spec);
  const blank = columns.map(
    (column) => `CAST(NULL AS ${readType(column, settings)}) AS ${quoteName(column.name)}`,
  );
  const converted = columns.map(
    (column) => `${convertedExpression(column, settings)} AS ${quoteName(column.name)}`,
  );
  const rendered = columns.map((column) => renderedExpression(column, settings));
  return `SELECT ${rendered.join(', ')} FROM (SELECT ${converted.join(', ')} FROM (SELECT ${blank.join(', ')}))`;
}

function schemaQuery(select: string): string {
  return `SELECT column_name AS name, column_type AS type FROM (DESCRIBE ${select})`;
}
