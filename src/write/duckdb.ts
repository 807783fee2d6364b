/** Owner of DuckDB: loaded when the first partition is converted, bounded in memory, cut off from any download. */
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';

export interface EngineOptions {
  readonly threads: number;
  readonly memoryBytes: number;
  /** Where it may spill. */
  readonly tempFolder: string;
}

type Row = Readonly<Record<string, unknown>>;

export interface Session {
  run(sql: string): Promise<void>;
  /** Rows with JSON-like values: integers beyond 2^53 and times are text. */
  rows(sql: string): Promise<Row[]>;
  close(): void;
}

export interface Engine {
  session(): Promise<Session>;
  close(): void;
}

export function createEngine(options: EngineOptions): Engine {
  let instance: Promise<DuckDBInstance> | undefined;
  return {
    session: async () => {
      instance ??= start(options);
      return sessionOf(await (await instance).connect());
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

function sessionOf(connection: DuckDBConnection): Session {
  return {
    run: async (sql) => {
      await connection.run(sql);
    },
    rows: async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson(),
    close: () => {
      connection.closeSync();
    },
  };
}
