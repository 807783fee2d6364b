/** Starts DuckDB at its first use, and runs statements with a memory limit and without downloads of extensions. */
import { rm } from 'node:fs/promises';
import PQueue from 'p-queue';
import { makeTempFolder, tempFolderOf, tempPath } from '../files/temp-files.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../files/machine.js';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { interrupted, loadDuckDb, mapErrors } from './load-duckdb.js';
import { select, type QueryResult } from './stream-rows.js';

export interface EngineOptions {
  /** By default one per core; fewer if the limit of open files is low. */
  readonly threads?: number;
  /**
   * The `memory_limit` of DuckDB in bytes; 300 MB by default, and at most half of the memory of the machine. Small and large connections have one each.
   * DuckDB can use more, because the limit is for its buffer manager only.
   */
  readonly memoryBytes?: number | undefined;
  /** A folder for data that exceeds the memory limit. The engine makes it with its first connection, and the caller removes it. */
  readonly tempFolder: string;
  /** Interrupts the engine when it aborts. */
  readonly signal?: AbortSignal;
}

export type ResultRow = Readonly<Record<string, unknown>>;

export interface DuckDb {
  run(sql: string): Promise<void>;
  /** All rows with JSON values: integers of 64 or more bits, decimals and times are text. */
  rows(sql: string): Promise<ResultRow[]>;
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

export type VerbEngine = Readonly<ReturnType<typeof verbEngine>>;

/** The engine of a verb that writes no lake. */
export function verbEngine(
  verb: string,
  { resolved, surroundings, signal }: EngineUser,
  memoryBytes?: number,
) {
  const folder = tempPath(tempFolderOf(resolved.options.tempDir, surroundings.home), verb);
  const engine = createEngine({ tempFolder: folder, signal, memoryBytes });
  return {
    ...engine,
    /** The engine's own folder in --temp-dir, also for other temporary files of the verb. It exists from the first connection on. */
    folder,
    /** Interrupts running statements, and removes the folder. */
    end: async (): Promise<void> => {
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
const enter = (places: PQueue, signal: AbortSignal): Promise<() => void> =>
  new Promise((resolve, reject) => {
    const hold = (): Promise<void> => new Promise((leave) => resolve(leave));
    places.add(hold, { signal }).catch(reject);
  });

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
const duckDbOf = (connection: DuckDBConnection, stop: AbortSignal, close: () => void): DuckDb => ({
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
});
