/** Owner of DuckDB: loaded when it is first needed, bounded in memory, cut off from any download. */
import { createRequire } from 'node:module';
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
  readonly threads: number;
  readonly memoryBytes: number;
  /** Where it may spill. */
  readonly tempFolder: string;
}

export type Row = Readonly<Record<string, unknown>>;

/** A value that has lost nothing: whole numbers of 64 bits and more are bigint, decimals and times text (UTC, to the microsecond). */
export type Cell =
  null | boolean | number | bigint | string | readonly Cell[] | { readonly [name: string]: Cell };

export interface Column {
  /** Another one's name with a number behind it when they would be the same. */
  readonly name: string;
  readonly isNumber: boolean;
}

export interface QueryResult {
  readonly columns: readonly Column[];
  /** Rows as they are made, some at a time. */
  readonly batches: AsyncIterable<readonly (readonly Cell[])[]>;
}

export interface DuckDbSession {
  run(sql: string): Promise<void>;
  /** Rows with JSON-like values: integers beyond 2^53 and times are text. */
  rows(sql: string): Promise<Row[]>;
  /** Undefined unless DuckDB says that it is one statement, and a SELECT. Errors are DuckDB's own. */
  select(sql: string): Promise<QueryResult | undefined>;
  close(): void;
}

export interface Engine {
  /**
   * `small`: statements run on the thread that they are given to, which costs less than to share them out; several
   * sessions use the cores together. Of the large ones, which may fill the memory, there are as many at once as threads: whoever
   * asks for one more waits, and must not hold another.
   */
  session(work?: 'small' | 'large'): Promise<DuckDbSession>;
  /** Ends what runs, and whatever begins after this, with `interrupted`. */
  interrupt(): void;
  close(): void;
}

export function createEngine(options: EngineOptions): Engine {
  let large: Promise<DuckDBInstance> | undefined;
  let small: Promise<DuckDBInstance> | undefined;
  let isInterrupted = false;
  const open = new Set<DuckDBConnection>();
  const places = new Semaphore(options.threads);
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
  return {
    session: async (work = 'large') => {
      if (isInterrupted) throw interrupted();
      if (work === 'small') return connectTo((small ??= start({ ...options, threads: 1 })), () => undefined);
      await places.take();
      return connectTo((large ??= start(options)), () => {
        places.leave();
      });
    },
    interrupt: () => {
      isInterrupted = true;
      places.refuse(interrupted());
      for (const connection of open) connection.interrupt();
    },
    close: () => {
      for (const instance of [large, small]) {
        instance?.then(
          (started) => {
            started.closeSync();
          },
          () => undefined,
        );
      }
    },
  };
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A fixed number of them, given in the order of asking. */
class Semaphore {
  #free: number;
  readonly #waiting = new Set<Waiter>();

  constructor(count: number) {
    this.#free = count;
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else
      await new Promise<void>((resolve, reject) => {
        this.#waiting.add({ resolve, reject });
      });
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next.resolve();
  }

  /** Whoever waits gets none. */
  refuse(error: Error): void {
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
  }
}

/** Rejects when its native part cannot be loaded on this machine. */
export function duckdbVersion(): Promise<string> {
  return new Promise((resolve) => {
    resolve(load().version());
  });
}

/** Whether it is there, without loading it. Throws `engine-missing`. */
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
  return new CryptodlError('engine-missing', `the binary of DuckDB for ${platform} is not installed`, {
    cause,
    hint: 'install cryptodl again with its optional packages: npm install --include=optional',
  });
}

/**
 * Not `import()`: that reads its many files once more, for the names that they export. Throws `engine-missing` when the
 * binary of this platform is not installed.
 */
function load(): typeof Values {
  try {
    return createRequire(import.meta.url)('@duckdb/node-api') as typeof Values;
  } catch (error) {
    if (errnoOf(error) !== 'MODULE_NOT_FOUND') throw error;
    throw engineMissing(error);
  }
}

async function start(options: EngineOptions): Promise<DuckDBInstance> {
  return load().DuckDBInstance.create(':memory:', {
    threads: String(options.threads),
    memory_limit: `${Math.floor(options.memoryBytes / 1e6)}MB`,
    temp_directory: options.tempFolder,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
  });
}

function interrupted(): CryptodlError {
  return new CryptodlError('interrupted', 'the write was ended before it was done');
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
    // It hands parts of a value to the converter that it is given, whatever that makes of them.
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

/** Like the client's own values for JSON, but for whole numbers and instants. */
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

/** `2024-01-15 08:00:00.5` → `2024-01-15T08:00:00.500000Z`; what has no such form stays as it is (`infinity`). */
function instantText(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?$/.exec(text);
  if (match === null) return text;
  const [, day = '', time = '', fraction = ''] = match;
  return `${day}T${time}.${fraction.padEnd(6, '0')}Z`;
}

/** DuckDB has no error codes, only texts: those that are not about the data are told apart here, once. */
async function mapErrors<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
    if (/No space left|disk quota/i.test(text)) {
      throw new CryptodlError('disk-full', `the disk is full: ${text}`, {
        cause: error,
        hint: 'make room and run the same command again; what is committed stays',
      });
    }
    if (text.startsWith('INTERRUPT Error')) throw interrupted();
    if (text.startsWith('IO Error')) throw new CryptodlError('disk', text, { cause: error });
    if (text.startsWith('Out of Memory Error')) {
      throw new CryptodlError('out-of-memory', `DuckDB ran out of its memory: ${text}`, {
        cause: error,
        hint: 'smaller files need less: --partition day; or fewer at once: --concurrency 1',
      });
    }
    throw error;
  }
}
