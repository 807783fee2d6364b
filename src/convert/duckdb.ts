/** The owner of DuckDB: loaded on first use, with a memory limit, and without downloads of extensions. */
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { CryptodlError, errnoOf } from '../model/errors.js';
import type * as Values from '@duckdb/node-api';
import type {
  DuckDBConnection,
  DuckDBInstance,
  DuckDBResult,
  DuckDBTypeId,
  DuckDBValueConverter,
} from '@duckdb/node-api';

export interface EngineOptions {
  /** Threads; by default one per core. */
  readonly threads?: number;
  /** Memory limit, without buffers; 300 MB by default. */
  readonly memoryBytes?: number;
  /** Folder for data that exceeds the memory limit. */
  readonly tempFolder: string;
  /** Interrupts the engine when it aborts. */
  readonly signal?: AbortSignal;
}

export type Row = Readonly<Record<string, unknown>>;

/** A value without loss: integers of 64 bits and more as bigint, decimals and times as text (UTC, with microseconds). */
export type Cell =
  null | boolean | number | bigint | string | readonly Cell[] | { readonly [name: string]: Cell };

export interface Column {
  /** Unique: a repeated name gets a number. */
  readonly name: string;
  readonly isNumber: boolean;
}

export interface QueryResult {
  readonly columns: readonly Column[];
  /** Rows in batches, read while the query runs. */
  readonly batches: AsyncIterable<readonly (readonly Cell[])[]>;
}

export interface DuckDbSession {
  run(sql: string): Promise<void>;
  /** All rows with JSON values: integers beyond 2^53 and times are text. */
  rows(sql: string): Promise<Row[]>;
  /** The result of a single SELECT statement; undefined for any other SQL. Rejects with errors of DuckDB. */
  select(sql: string): Promise<QueryResult | undefined>;
  close(): void;
}

export interface Engine {
  /**
   * `small`: each statement runs on one thread, without the cost of distributing it; several sessions use several cores. `large`:
   * statements may use the whole memory limit, and at most `threads` sessions exist; further callers wait. A caller must not wait
   * for a large session while it has one.
   */
  session(work?: 'small' | 'large'): Promise<DuckDbSession>;
  /** Running and later statements reject with `interrupted`. */
  interrupt(): void;
  close(): void;
}

export function createEngine(options: EngineOptions): Engine {
  let large: Promise<DuckDBInstance> | undefined;
  let small: Promise<DuckDBInstance> | undefined;
  let isInterrupted = false;
  const open = new Set<DuckDBConnection>();
  const { signal, threads = availableParallelism() } = options;
  const places = new Semaphore(threads);
  const connectTo = async (
    instance: Promise<DuckDBInstance>,
    onClose: () => void,
  ): Promise<DuckDbSession> => {
    try {
      const connection = await (await instance).connect();
      open.add(connection);
      return sessionOf(connection, () => {
        open.delete(connection);
        onClose();
      });
    } catch (error) {
      onClose();
      throw error;
    }
  };
  const interrupt = (): void => {
    isInterrupted = true;
    places.refuse(interrupted());
    for (const connection of open) connection.interrupt();
  };
  signal?.addEventListener('abort', interrupt, { once: true });
  return {
    interrupt,
    session: async (work = 'large') => {
      if (isInterrupted) throw interrupted();
      if (work === 'small') return connectTo((small ??= start(1, options)), () => undefined);
      await places.take();
      return connectTo((large ??= start(threads, options)), () => places.leave());
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

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A counting semaphore, first come, first served. */
class Semaphore {
  #free: number;
  readonly #waiting = new Set<Waiter>();

  constructor(count: number) {
    this.#free = count;
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve, reject) => void this.#waiting.add({ resolve, reject }));
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else {
      this.#waiting.delete(next);
      next.resolve();
    }
  }

  /** Rejects all waiting calls. */
  refuse(error: Error): void {
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
  }
}

/** The version of DuckDB. Rejects when its native binary cannot be loaded. */
export function duckdbVersion(): Promise<string> {
  return new Promise((resolve) => {
    resolve(load().version());
  });
}

/** Throws `engine-missing` when the binary of this platform is not installed. Does not load it. */
export function requireBinary(): void {
  const api = createRequire(import.meta.url).resolve('@duckdb/node-api');
  const bindings = createRequire(createRequire(api).resolve('@duckdb/node-bindings/package.json'));
  const causes: unknown[] = [];
  for (const libc of ['', '-musl']) {
    try {
      bindings.resolve(`@duckdb/node-bindings-${process.platform}-${process.arch}${libc}/duckdb.node`);
      return;
    } catch (error) {
      causes.push(error);
    }
  }
  throw engineMissing(causes[0]);
}

function engineMissing(cause: unknown): CryptodlError {
  const platform = `${process.platform} ${process.arch}`;
  return new CryptodlError('engine-missing', `the DuckDB binary for ${platform} is not installed`, {
    cause,
    hint: 'install cryptodl again with optional packages: npm install --include=optional',
  });
}

/**
 * Uses `require`, because `import()` reads the many files of the package twice to find their exports. Throws `engine-missing`
 * when the binary of this platform is not installed.
 */
function load(): typeof Values {
  try {
    return createRequire(import.meta.url)('@duckdb/node-api') as typeof Values;
  } catch (error) {
    if (errnoOf(error) !== 'MODULE_NOT_FOUND') throw error;
    throw engineMissing(error);
  }
}

async function start(threads: number, options: EngineOptions): Promise<DuckDBInstance> {
  const { memoryBytes = 300e6, tempFolder } = options;
  return load().DuckDBInstance.create(':memory:', {
    threads: String(threads),
    memory_limit: `${Math.floor(memoryBytes / 1e6)}MB`,
    temp_directory: tempFolder,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
  });
}

function interrupted(): CryptodlError {
  return new CryptodlError('interrupted', 'the write was interrupted');
}

function sessionOf(connection: DuckDBConnection, onClose: () => void): DuckDbSession {
  return {
    run: async (sql) => {
      await mapErrors(() => connection.run(sql));
    },
    rows: async (sql) => (await mapErrors(() => connection.runAndReadAll(sql))).getRowObjectsJson(),
    select: (sql) => select(connection, sql),
    close: () => {
      onClose();
      connection.closeSync();
    },
  };
}

async function select(connection: DuckDBConnection, sql: string): Promise<QueryResult | undefined> {
  const values = load();
  const { DuckDBTypeId: types, StatementType } = values;
  const statements = await connection.extractStatements(sql);
  if (statements.count !== 1) return undefined;
  const statement = await statements.prepare(0);
  if (statement.statementType !== StatementType.SELECT) return undefined;
  const result = await statement.stream();
  const numbers = new Set<DuckDBTypeId>(
    [
      [types.TINYINT, types.SMALLINT, types.INTEGER, types.BIGINT, types.HUGEINT, types.BIGNUM],
      [types.UTINYINT, types.USMALLINT, types.UINTEGER, types.UBIGINT, types.UHUGEINT],
      [types.FLOAT, types.DOUBLE, types.DECIMAL],
    ].flat(),
  );
  return {
    columns: result
      .deduplicatedColumnNames()
      .map((name, at) => ({ name, isNumber: numbers.has(result.columnTypeId(at)) })),
    // The type of the JSON converter is narrower than its behaviour: it passes nested values to the given converter.
    batches: batchesOf(result, cellOf(values, values.JsonDuckDBValueConverter as unknown as ToCell)),
  };
}

type ToCell = DuckDBValueConverter<Exclude<Cell, null>>;

async function* batchesOf(
  result: DuckDBResult,
  converter: ToCell,
): AsyncGenerator<readonly (readonly Cell[])[]> {
  for await (const rows of result.yieldConvertedRows(converter)) yield rows;
}

/** Like the JSON converter of DuckDB, except for integers and times. */
function cellOf(
  { DuckDBTypeId: types, DuckDBTimestampValue: Instant, DuckDBTimestampTZValue: Zoned }: typeof Values,
  otherwise: ToCell,
): ToCell {
  const { TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS } = types;
  const instants = new Set<DuckDBTypeId>([TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS]);
  return (value, type, converter) => {
    if (typeof value === 'bigint') return value;
    if (value instanceof Zoned) return instantText(String(new Instant(value.micros)));
    if (instants.has(type.typeId) && value !== null) return instantText(String(value));
    return otherwise(value, type, converter);
  };
}

/** `2024-01-15 08:00:00.5` → `2024-01-15T08:00:00.500000Z`; other texts are unchanged (`infinity`). */
function instantText(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?$/.exec(text);
  if (match === null) return text;
  const [, day = '', time = '', fraction = ''] = match;
  return `${day}T${time}.${fraction.padEnd(6, '0')}Z`;
}

/** Maps errors of DuckDB that do not concern the data. DuckDB has no error codes, so this is the only place that reads its messages. */
async function mapErrors<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
    if (/No space left|disk quota/i.test(text)) {
      throw new CryptodlError('disk-full', `the disk is full: ${text}`, {
        cause: error,
        hint: 'free some space and run the same command again; committed files are kept',
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
