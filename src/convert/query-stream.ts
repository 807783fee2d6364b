/** Streams the rows of a query, and rejects if the stream ends before the last row. */
import type * as Values from '@duckdb/node-api';
import type {
  DuckDBConnection,
  DuckDBPreparedStatement,
  DuckDBResult,
  DuckDBTypeId,
  DuckDBValueConverter,
} from '@duckdb/node-api';
import { CryptodlError } from '../model/errors.js';
import { interrupted, mapErrors } from './duckdb-errors.js';

/** A value without loss: integers of 64 bits and more as bigint, decimals and times as text (instants in UTC, with at least 6 digits after the second). */
export type Cell =
  null | boolean | number | bigint | string | readonly Cell[] | { readonly [name: string]: Cell };

interface Column {
  /** Unique: a repeated name gets a number. */
  readonly name: string;
  readonly isNumber: boolean;
}

export interface QueryResult {
  readonly columns: readonly Column[];
  /** Rows in batches, read while the query runs. */
  readonly batches: AsyncIterable<readonly (readonly Cell[])[]>;
}

/** The result of a single SELECT statement; undefined for any other SQL. Rejects with errors of DuckDB. */
export async function select(
  connection: DuckDBConnection,
  sql: string,
  { values, isInterrupted }: { readonly values: typeof Values; readonly isInterrupted: () => boolean },
): Promise<QueryResult | undefined> {
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
  const names = Array.from({ length: statement.columnCount }, (_, at) => statement.columnName(at));
  const columns = uniqueNames(names).map((name, at) => ({
    name,
    isNumber: numbers.has(statement.columnTypeId(at)),
  }));
  const query = await withEndRow(connection, sql, columns.length);
  const result = await atPositionOf(BEFORE_QUERY, () => query.statement.stream());
  // The type of the JSON converter is narrower than its behaviour: it passes nested values to the given converter.
  const converter = cellConverter(values, values.JsonDuckDBValueConverter as unknown as ToCell);
  return {
    columns,
    batches: batchesOf(result, converter, () => whyIncomplete(connection, query.text, isInterrupted)),
  };
}

/**
 * DuckDB's client ends the stream of a failed or interrupted query like that of a complete one. So the query gets a last row, with
 * `true` in an additional last column. If that row does not arrive, rows are missing. UNION ALL keeps the order of rows.
 */
async function withEndRow(
  connection: DuckDBConnection,
  sql: string,
  columns: number,
): Promise<{ readonly statement: DuckDBPreparedStatement; readonly text: string }> {
  // The columns get their positions as names, which are unique and never `.end`.
  const names = Array.from({ length: columns }, (_, at) => `"${at}"`).join(', ');
  // A semicolon and comments may end the query, but a subquery takes no semicolon: cut at the last one until DuckDB accepts the text.
  for (let text = sql; ; text = text.slice(0, text.lastIndexOf(';'))) {
    const whole = `${BEFORE_QUERY}${text}\n) AS ".query" (${names}) UNION ALL BY NAME SELECT true AS ".end"`;
    try {
      return { statement: await connection.prepare(whole), text };
    } catch (error) {
      if (!text.includes(';')) throw error;
    }
  }
}

const BEFORE_QUERY = 'SELECT *, false AS ".end" FROM (\n';
/** Runs the query again for one value: `hash` makes DuckDB compute each cell, and `max` keeps only one. */
const BEFORE_CHECK = 'SELECT max(hash(COLUMNS(*))) FROM (\n';

/** Corrects the position in an error of DuckDB: the query of the user begins after `prefix`. */
async function atPositionOf<T>(prefix: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Error)
      error.message = error.message.replace(
        /("position":")(\d+)/,
        (_, name: string, position: string) => name + String(Number(position) - prefix.length),
      );
    throw error;
  }
}

/** For a query whose stream ended too early. Rejects with `interrupted()` after a stop by the user, else with the error of a second run, else with `disk`. */
async function whyIncomplete(
  connection: DuckDBConnection,
  text: string,
  isInterrupted: () => boolean,
): Promise<never> {
  if (isInterrupted()) throw interrupted();
  await atPositionOf(BEFORE_CHECK, () => mapErrors(() => connection.run(`${BEFORE_CHECK}${text}\n)`)));
  throw new CryptodlError('disk', 'the query ended before its last row', {
    hint: 'run it again; cryptodl verify --deep checks the files of the lake',
  });
}

/** A repeated name gets the first number that makes it unique: `a`, `a:1`. */
function uniqueNames(names: readonly string[]): string[] {
  const taken = new Set(names);
  const seen = new Set<string>();
  return names.map((name) => {
    let unique = name;
    for (let number = 1; seen.has(name) && taken.has(unique); number += 1) unique = `${name}:${number}`;
    taken.add(unique);
    seen.add(name);
    return unique;
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
