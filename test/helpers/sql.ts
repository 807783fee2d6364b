/** SQL of a reader that knows nothing of our writer. */
import { DuckDBInstance } from '@duckdb/node-api';
import type { DuckDBConnection } from '@duckdb/node-api';
import { afterAll, beforeAll } from 'vitest';

type Rows = Record<string, unknown>[];

/** Rows of one query, in memory of its own; numbers of 64 bits come as text. */
export async function sql(query: string): Promise<Rows> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    return (await connection.runAndReadAll(query)).getRowObjectsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** The same for a test file with many queries: one connection answers them all. */
export function useSql(): (query: string) => Promise<Rows> {
  const connections: DuckDBConnection[] = [];
  const instances: DuckDBInstance[] = [];
  beforeAll(async () => {
    const instance = await DuckDBInstance.create(':memory:');
    instances.push(instance);
    connections.push(await instance.connect());
  });
  afterAll(() => {
    for (const opened of [...connections, ...instances]) opened.closeSync();
  });
  return async (query) => {
    const [connection] = connections;
    if (connection === undefined) throw new Error('the connection is not open yet');
    return (await connection.runAndReadAll(query)).getRowObjectsJson();
  };
}
