/** The rows of objects in DuckDB, as an audit compares them. */
import type { DuckDb } from '../../convert/duckdb.js';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { MEMORY_CSV_BYTES, type Conversion } from '../../convert/conversion.js';
import { readObjects, removeScratch, type ReadObjects } from '../../convert/read-objects.js';
import type { SourceObject, Settings } from '../../model/task.js';

/** Rows are loaded in their published order, with numbers as doubles. */
export const AUDITED: Settings = {
  format: 'parquet',
  partition: 'month',
  cadence: 'auto',
  numbers: 'double',
  timestamps: 'us',
  asPublished: true,
};

export interface AuditedObjects extends Pick<Conversion, 'spec' | 'series' | 'received' | 'failed'> {
  /** For temporary files. */
  readonly folder: string;
}

/**
 * Calls `act` while the relation `rows` holds the rows of the valid objects, each with the ordinal of its object. Resolves with undefined if no
 * object is valid. Rejects with errors that do not concern the content of the objects (disk, memory, interruption, bugs).
 */
export async function withRows<T>(
  duckdb: DuckDb,
  { folder, ...objects }: AuditedObjects,
  act: (read: ReadObjects) => Promise<T>,
  ordinalOf: (object: SourceObject) => number = () => 0,
): Promise<T | undefined> {
  const targetPath = join(folder, randomUUID());
  const conversion: Conversion = {
    ...objects,
    duckdb,
    settings: AUDITED,
    csvPath: `${targetPath}.csv`,
    targetPath,
    memoryCsvBytes: MEMORY_CSV_BYTES,
    metadata: () => ({ cryptodl: '{}' }),
  };
  try {
    const read = await readObjects(conversion, (inputs) =>
      inputs.map(({ received }) => ordinalOf(received.object)),
    );
    return read === undefined ? undefined : await act(read);
  } finally {
    await removeScratch(conversion);
  }
}
