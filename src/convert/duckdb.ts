/** The owner of DuckDB: loaded on first use, with a memory limit, and without downloads of extensions. */
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { makeTempFolder, tempFolderOf, tempPath } from '../files/temp-files.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../model/machine.js';
import type * as Values from '@duckdb/node-api';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { interrupted, mapErrors } from './duckdb-errors.js';
import { select } from './query-stream.js';
import type { QueryResult } from './query-stream.js';

export interface EngineOptions {
  /** Threads; by default one per core, fewer where few files may be open. */
  readonly threads?: number;
  /**
   * The `memory_limit` of DuckDB in bytes; 300 MB by default, and at most half of the memory. The limit covers only its buffer manager, so
   * DuckDB can use more.
   */
  readonly memoryBytes?: number;
  /** New folder for data that exceeds the memory limit. The caller removes it. */
  readonly tempFolder: string;
  /** Interrupts the engine when it aborts. */
  readonly signal?: AbortSignal;
}

export type Row = Readonly<Record<string, unknown>>;

export interface DuckDbSession {
  run(sql: string): Promise<void>;
  /** All rows with JSON values: integers of 64 or more bits, decimals and times are text. */
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

export interface VerbEngine extends Engine {
  /** An own folder in --temp-dir, for what exceeds the memory and for other temporary files. It exists from the first session on. */
  readonly folder: string;
  /** Interrupts what runs, and removes the folder. */
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

/** The part of a request that an engine needs. */
interface EngineUser {
  readonly resolved: { readonly options: { readonly tempDir: string | undefined } };
  readonly surroundings: { readonly home: string | undefined };
  readonly signal: AbortSignal;
}

/** DuckDB starts with the first session. The caller must close the engine. */
export function createEngine(options: EngineOptions): Engine {
  let large: Promise<DuckDBInstance> | undefined;
  let small: Promise<DuckDBInstance> | undefined;
  let isInterrupted = false;
  const open = new Set<DuckDBConnection>();
  const { signal, threads = withinOpenFiles(cores()) } = options;
  const places = new Semaphore(threads);
  const connectTo = async (
    instance: Promise<DuckDBInstance>,
    onClose: () => void,
  ): Promise<DuckDbSession> => {
    try {
      const connection = await (await instance).connect();
      open.add(connection);
      const close = (): void => {
        open.delete(connection);
        onClose();
        connection.closeSync();
      };
      return sessionOf(connection, { isInterrupted: () => isInterrupted, close });
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
    resolve(loadDuckDb().version());
  });
}

/** The error for a binary that does not exist, is not installed, or cannot be loaded. */
function engineMissing(cause: unknown): CryptodlError {
  const [why = ''] = cause instanceof Error ? cause.message.split('\n') : [String(cause)];
  const reason = errnoOf(cause) === 'MODULE_NOT_FOUND' ? 'is not installed' : `cannot be loaded: ${why}`;
  return new CryptodlError(
    'engine-missing',
    `the DuckDB binary for ${process.platform} ${process.arch} ${reason}`,
    {
      cause,
      hint: 'install cryptodl again on this machine with npm install --include=optional; DuckDB has binaries for Linux, macOS and Windows on x64 and arm64, and --format zip works without it',
    },
  );
}

/**
 * Uses `require`, because `import()` reads the many files of the package twice to find their exports. Throws `engine-missing`
 * when the binary of this platform cannot be loaded.
 */
export function loadDuckDb(): typeof Values {
  try {
    return createRequire(import.meta.url)('@duckdb/node-api') as typeof Values;
  } catch (error) {
    throw engineMissing(error);
  }
}

async function start(threads: number, options: EngineOptions): Promise<DuckDBInstance> {
  const { memoryBytes = 300e6, tempFolder } = options;
  // Most statements need no such folder, so they work without one. For the others, DuckDB gives the error.
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

function sessionOf(
  connection: DuckDBConnection,
  { isInterrupted, close }: { readonly isInterrupted: () => boolean; readonly close: () => void },
): DuckDbSession {
  // Interrupting a connection ends only the statement that it is running.
  const refuseInterrupted = (): void => {
    if (isInterrupted()) throw interrupted();
  };
  return {
    run: async (sql) => {
      refuseInterrupted();
      await mapErrors(() => connection.run(sql));
    },
    rows: async (sql) => {
      refuseInterrupted();
      return (await mapErrors(() => connection.runAndReadAll(sql))).getRowObjectsJson();
    },
    select: async (sql) => {
      refuseInterrupted();
      return select(connection, sql, { values: loadDuckDb(), isInterrupted });
    },
    close,
  };
}
