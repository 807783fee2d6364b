/** Streams the rows of a query, and rejects if the stream ends before the last row. */
import type {
  DuckDBConnection,
  DuckDBTypeId,
  DuckDBPreparedStatement,
  DuckDBValueConverter,
  DuckDBResult,
} from '@duckdb/node-api';
import type * as Values from '@duckdb/node-api';
import { CryptodlError } from '../model/errors.js';
import { loadDuckDb, mapErrors } from './load-duckdb.js';

/** The value of a cell, without loss of precision. Integers of 64 bits and more are bigint, decimals and times are text (instants in UTC, with at least 6 fraction digits). */
export type Cell =
  null | boolean | number | bigint | string | readonly Cell[] | { readonly [name: string]: Cell };

const BEFORE_QUERY = 'SELECT *, false AS ".end" FROM (\n';

/** Runs a query again for its error alone: `hash` makes DuckDB compute each cell, and `max` keeps one value of each column. */
const BEFORE_CHECK = 'SELECT max(hash(COLUMNS(*))) FROM (\n';

export interface QueryResult {
  /** Names are unique: DuckDB adds a number to a repeated one. */
  readonly columns: readonly { readonly name: string; readonly isNumber: boolean }[];
  /** Rows in batches, read while the query runs. */
  readonly batches: AsyncIterable<readonly (readonly Cell[])[]>;
}

export async function select(
  connection: DuckDBConnection,
  sql: string,
  stop: AbortSignal,
): Promise<QueryResult | undefined> {
  stop.throwIfAborted();
  const values = loadDuckDb();
  const { DuckDBTypeId: types, StatementType } = values;
  const statements = await connection.extractStatements(sql);
  if (statements.count !== 1) return undefined;
  const statement = await statements.prepare(0);
  if (statement.statementType !== StatementType.SELECT) return undefined;
  const numbers = new Set<DuckDBTypeId>(
    [
      [types.TINYINT, types.SMALLINT, types.INTEGER, types.BIGINT, types.HUGEINT, types.BIGNUM],
      [types.UTINYINT, types.USMALLINT, types.UINTEGER, types.UBIGINT, types.UHUGEINT],
      [types.FLOAT, types.DOUBLE, types.DECIMAL],
    ].flat(),
  );
  const query = await withEndRow(connection, sql);
  const result = await shiftErrorPosition(BEFORE_QUERY, () => mapErrors(() => query.statement.stream()));
  const columns = result.columnNames().slice(0, -1);
  // The type of the JSON converter is narrower than its behaviour: it passes nested values to the given converter.
  const converter = cellConverter(values, values.JsonDuckDBValueConverter as unknown as ToCell);
  return {
    columns: columns.map((name, at) => ({ name, isNumber: numbers.has(result.columnTypeId(at)) })),
    batches: batchesOf(result, converter, () => failIncomplete(connection, query.text, stop)),
  };
}

/**
 * The client of DuckDB ends the stream of a failed or interrupted query like that of a complete one. So the query gets a last row, with
 * `true` in an additional last column. If that row does not arrive, rows are missing. UNION ALL keeps the order of rows. `text`: the
 * query as DuckDB accepted it.
 */
async function withEndRow(
  connection: DuckDBConnection,
  sql: string,
): Promise<{ readonly statement: DuckDBPreparedStatement; readonly text: string }> {
  // A subquery must not end with a semicolon, but the query may, and comments may follow: cut at the last one until DuckDB accepts the text.
  for (let text = sql; ; text = text.slice(0, text.lastIndexOf(';'))) {
    const extended = `${BEFORE_QUERY}${text}\n) UNION ALL BY NAME SELECT true AS ".end"`;
    try {
      return { statement: await connection.prepare(extended), text };
    } catch (error) {
      if (!text.includes(';')) throw error;
    }
  }
}

/** Corrects the position in an error of DuckDB: the query of the user begins after `prefix`. */
async function shiftErrorPosition<T>(prefix: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const message = error.message.replace(
      /("position":")(\d+)/,
      (_, name: string, position: string) => name + String(Number(position) - prefix.length),
    );
    throw error instanceof CryptodlError ? error.with({ message }) : new Error(message, { cause: error });
  }
}

/** For a stream that ended too early. Rejects with `interrupted` after an interrupt, else with the error of a second run, else with `disk`. */
async function failIncomplete(connection: DuckDBConnection, sql: string, stop: AbortSignal): Promise<never> {
  stop.throwIfAborted();
  await shiftErrorPosition(BEFORE_CHECK, () => mapErrors(() => connection.run(`${BEFORE_CHECK}${sql}\n)`)));
  throw new CryptodlError('disk', 'the query ended before its last row', {
    hint: 'run it again; cryptodl verify --deep checks the files of the lake',
  });
}

type ToCell = DuckDBValueConverter<Exclude<Cell, null>>;

async function* batchesOf(
  result: DuckDBResult,
  converter: ToCell,
  onIncomplete: () => Promise<never>,
): AsyncGenerator<readonly (readonly Cell[])[]> {
  let isComplete = false;
  for await (const rows of result.yieldConvertedRows(converter)) {
    // Takes the end column off each row, then removes the end row.
    for (const row of rows) isComplete = row.pop() === true;
    if (isComplete) rows.pop();
    if (rows.length > 0) yield rows;
  }
  if (!isComplete) await onIncomplete();
}

/** Like the JSON converter of DuckDB, except for integers and times. */
function cellConverter(
  { DuckDBTypeId: types, DuckDBTimestampValue: Instant, DuckDBTimestampTZValue: Zoned }: typeof Values,
  jsonConverter: ToCell,
): ToCell {
  const { TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS } = types;
  const instants = new Set<DuckDBTypeId>([TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS]);
  return (value, type, converter) => {
    if (typeof value === 'bigint') return value;
    // The text of an instant with a zone is in the local zone of the process.
    if (value instanceof Zoned) return instantText(String(new Instant(value.micros)));
    if (instants.has(type.typeId) && value !== null) return instantText(String(value));
    return jsonConverter(value, type, converter);
  };
}

/** `2024-01-15 08:00:00.5` → `2024-01-15T08:00:00.500000Z`; other texts are unchanged (`infinity`). */
function instantText(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?$/.exec(text);
  if (match === null) return text;
  const [, day = '', time = '', fraction = ''] = match;
  return `${day}T${time}.${fraction.padEnd(6, '0')}Z`;
}
