/** Loads DuckDB at its first use, and runs statements with a memory limit and without downloads of extensions. */
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import PQueue from 'p-queue';
import { makeTempFolder, tempFolderOf, tempPath } from '../files/temp-files.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../files/machine.js';
import type * as Values from '@duckdb/node-api';
import type {
  DuckDBConnection,
  DuckDBInstance,
  DuckDBPreparedStatement,
  DuckDBResult,
  DuckDBTypeId,
  DuckDBValueConverter,
} from '@duckdb/node-api';

export interface EngineOptions {
  /** By default one per core; fewer if the limit of open files is low. */
  readonly threads?: number;
  /**
   * The `memory_limit` of DuckDB in bytes; 300 MB by default, and at most half of the memory of the machine. Small and large connections have one each.
   * DuckDB can use more, because the limit is for its buffer manager only.
   */
  readonly memoryBytes?: number;
  /** A folder for data that exceeds the memory limit. The engine makes it with its first connection, and the caller removes it. */
  readonly tempFolder: string;
  /** Interrupts the engine when it aborts. */
  readonly signal?: AbortSignal;
}

export type Row = Readonly<Record<string, unknown>>;

export interface DuckDb {
  run(sql: string): Promise<void>;
  /** All rows with JSON values: integers of 64 or more bits, decimals and times are text. */
  rows(sql: string): Promise<Row[]>;
  /** The result of a single SELECT statement; undefined for any other SQL. Rejects with errors of DuckDB. */
  select(sql: string): Promise<QueryResult | undefined>;
  close(): void;
}

export interface Engine {
  /**
   * `small`: each statement runs on one thread, which saves the cost of distributing it; several connections use several cores. `large`, the
   * default: each statement uses up to `threads` threads, and at most `threads` connections exist; further callers wait. A caller must close
   * its large connection before it asks for another, or callers may wait for each other without end.
   */
  connect(work?: 'small' | 'large'): Promise<DuckDb>;
  /** Running and later statements reject with `interrupted`. */
  interrupt(): void;
  close(): void;
}

export interface VerbEngine extends Engine {
  /** The engine's own folder in --temp-dir, also for other temporary files of the verb. It exists from the first connection on. */
  readonly folder: string;
  /** Interrupts running statements, and removes the folder. */
  end(): Promise<void>;
}

/** The engine of a verb that writes no lake. */
export function verbEngine(
  verb: string,
  { resolved, surroundings, signal }: EngineUser,
  memoryBytes?: number,
): VerbEngine {
  const folder = tempPath(tempFolderOf(resolved.options.tempDir, surroundings.home), verb);
  const memory = memoryBytes === undefined ? {} : { memoryBytes };
  const engine = createEngine({ tempFolder: folder, signal, ...memory });
  return {
    ...engine,
    folder,
    end: async () => {
      engine.interrupt();
      engine.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface EngineUser {
  readonly resolved: { readonly options: { readonly tempDir: string | undefined } };
  readonly surroundings: { readonly home: string | undefined };
  readonly signal: AbortSignal;
}

/** DuckDB starts with the first connection. The caller must close the engine. */
export function createEngine(options: EngineOptions): Engine {
  let large: Promise<DuckDBInstance> | undefined;
  let small: Promise<DuckDBInstance> | undefined;
  const open = new Set<DuckDBConnection>();
  const { signal, threads = withinOpenFiles(cores()) } = options;
  const stop = new AbortController();
  const places = new PQueue({ concurrency: threads });
  const connectTo = async (instance: Promise<DuckDBInstance>, onClose: () => void) => {
    try {
      const connection = await (await instance).connect();
      open.add(connection);
      return duckDbOf(connection, stop.signal, () => {
        open.delete(connection);
        onClose();
        connection.closeSync();
      });
    } catch (error) {
      onClose();
      throw error;
    }
  };
  const interrupt = (): void => {
    stop.abort(interrupted());
    for (const connection of open) connection.interrupt();
  };
  if (signal?.aborted === true) interrupt();
  signal?.addEventListener('abort', interrupt, { once: true });
  return {
    interrupt,
    connect: async (work = 'large') => {
      stop.signal.throwIfAborted();
      if (work === 'small') return connectTo((small ??= start(1, options)), () => undefined);
      const leave = await enter(places, stop.signal);
      return connectTo((large ??= start(threads, options)), leave);
    },
    close: () => {
      signal?.removeEventListener('abort', interrupt);
      for (const instance of [large, small])
        instance?.then(
          (started) => started.closeSync(),
          () => undefined,
        );
    },
  };
}

/** Waits for a place. Resolves with the function that frees it. */
function enter(places: PQueue, signal: AbortSignal): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const hold = (): Promise<void> => new Promise((leave) => resolve(leave));
    places.add(hold, { signal }).catch(reject);
  });
}

/** The version of DuckDB. Rejects when its native binary cannot be loaded. */
export function duckdbVersion(): Promise<string> {
  return new Promise((resolve) => resolve(loadDuckDb().version()));
}

/**
 * Uses `require`, because `import()` reads the many files of the package twice to find their exports. Throws `engine-missing`
 * when the binary of this platform cannot be loaded.
 */
export function loadDuckDb(): typeof Values {
  try {
    return createRequire(import.meta.url)('@duckdb/node-api') as typeof Values;
  } catch (cause) {
    const [message = ''] = cause instanceof Error ? cause.message.split('\n') : [String(cause)];
    const fault = errnoOf(cause) === 'MODULE_NOT_FOUND' ? 'is not installed' : `cannot be loaded: ${message}`;
    const binaries = 'DuckDB has binaries for Linux, macOS and Windows on x64 and arm64';
    const text = `the DuckDB binary for ${process.platform} ${process.arch} ${fault}`;
    throw new CryptodlError('engine-missing', text, {
      cause,
      hint: `install cryptodl again on this machine with npm install --include=optional; ${binaries}, and --format zip works without it`,
    });
  }
}

async function start(threads: number, options: EngineOptions): Promise<DuckDBInstance> {
  const { memoryBytes = 300e6, tempFolder } = options;
  // Most statements need no folder, so an error here must not end them. For the others, DuckDB gives the error.
  await makeTempFolder(tempFolder).catch(() => undefined);
  return loadDuckDb().DuckDBInstance.create(':memory:', {
    threads: String(threads),
    memory_limit: `${Math.floor(Math.min(memoryBytes, memoryLimitBytes() / 2) / 1e6)}MB`,
    temp_directory: tempFolder,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
  });
}

/** An interrupt ends only the statement that runs then, so the connection refuses later statements itself. */
function duckDbOf(connection: DuckDBConnection, stop: AbortSignal, close: () => void): DuckDb {
  return {
    run: async (sql) => {
      stop.throwIfAborted();
      await mapErrors(() => connection.run(sql));
    },
    rows: async (sql) => {
      stop.throwIfAborted();
      return (await mapErrors(() => connection.runAndReadAll(sql))).getRowObjectsJson();
    },
    select: (sql) => select(connection, sql, stop),
    close,
  };
}

function interrupted(): CryptodlError {
  return new CryptodlError('interrupted', 'the statement was interrupted');
}

/**
 * Whether an error of a query means that its file, or a row in it, cannot be read: damage, a file of another kind, or columns of
 * another type. False for typed errors other than `disk`, for errors of the program, and for a query that is wrong for each file.
 */
export function isFileError(error: unknown): boolean {
  if (error instanceof CryptodlError) return error.code === 'disk';
  return error instanceof Error && /^(?!FATAL|Parser|Catalog)[A-Za-z ]+ Error: /.test(error.message);
}

/** Turns errors of DuckDB about the disk, the memory or an interruption into typed errors. DuckDB has no error codes, so the text decides. */
async function mapErrors<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
    if (/No space left|disk quota/i.test(text)) {
      throw new CryptodlError('disk-full', `the disk is full: ${text}`, {
        cause: error,
        hint: 'free some space and try again; committed files are kept',
      });
    }
    if (text.startsWith('INTERRUPT Error')) throw interrupted();
    if (text.startsWith('IO Error')) throw new CryptodlError('disk', text, { cause: error });
    if (text.startsWith('Out of Memory Error')) {
      throw new CryptodlError('out-of-memory', `DuckDB exceeded its memory limit: ${text}`, {
        cause: error,
        hint: 'write smaller files (--partition day), or fewer at once (--concurrency 1)',
      });
    }
    throw error;
  }
}

// Streams the rows of a query, and rejects if the stream ends before the last row.

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

async function select(
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
    if (error instanceof Error)
      error.message = error.message.replace(
        /("position":")(\d+)/,
        (_, name: string, position: string) => name + String(Number(position) - prefix.length),
      );
    throw error;
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
