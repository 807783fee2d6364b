/** Owner of DuckDB: loaded when the first partition is converted, bounded in memory, cut off from any download. */
import { CryptodlError } from './errors.js';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';

export interface EngineOptions {
  readonly threads: number;
  readonly memoryBytes: number;
  /** Where it may spill. */
  readonly tempFolder: string;
}

export type Row = Readonly<Record<string, unknown>>;

export interface Session {
  run(sql: string): Promise<void>;
  /** Rows with JSON-like values: integers beyond 2^53 and times are text. */
  rows(sql: string): Promise<Row[]>;
  close(): void;
}

export interface Engine {
  session(): Promise<Session>;
  /** Ends what runs, and whatever begins after this, with `interrupted`. */
  interrupt(): void;
  close(): void;
}

export function createEngine(options: EngineOptions): Engine {
  let instance: Promise<DuckDBInstance> | undefined;
  let isInterrupted = false;
  const open = new Set<DuckDBConnection>();
  return {
    session: async () => {
      if (isInterrupted) throw interrupted();
      instance ??= start(options);
      const connection = await (await instance).connect();
      open.add(connection);
      return sessionOf(connection, () => open.delete(connection));
    },
    interrupt: () => {
      isInterrupted = true;
      for (const connection of open) connection.interrupt();
    },
    close: () => {
      instance?.then(
        (started) => {
          started.closeSync();
        },
        () => undefined,
      );
    },
  };
}

async function start(options: EngineOptions): Promise<DuckDBInstance> {
  const { DuckDBInstance: Instance } = await import('@duckdb/node-api');
  return Instance.create(':memory:', {
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

function sessionOf(connection: DuckDBConnection, onClose: () => void): Session {
  return {
    run: async (sql) => {
      await mapped(() => connection.run(sql));
    },
    rows: async (sql) => (await mapped(() => connection.runAndReadAll(sql))).getRowObjectsJson(),
    close: () => {
      onClose();
      connection.closeSync();
    },
  };
}

/** DuckDB has no error codes, only texts: those that are not about the data are told apart here, once. */
async function mapped<T>(act: () => Promise<T>): Promise<T> {
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
