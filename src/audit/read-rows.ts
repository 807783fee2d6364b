/** The rows of objects in DuckDB, as an audit compares them. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Conversion } from '../convert/conversion.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { readObjects, removeScratch } from '../convert/read-objects.js';
import type { ReadObjects } from '../convert/read-objects.js';
import type { CryptodlError } from '../model/errors.js';
import type { ArchiveObject, Settings } from '../model/task.js';

/** Rows are loaded in their published order, with numbers as doubles. */
export const AUDITED: Settings = {
  format: 'parquet',
  partition: 'month',
  cadence: 'auto',
  numbers: 'double',
  timestamps: 'us',
  asPublished: true,
};

/** About six months of 1m bars. */
const MEMORY_CSV_BYTES = 32 * 1024 * 1024;

/** Received objects of one series. */
export interface AuditedObjects extends Pick<Conversion, 'spec' | 'series' | 'received'> {
  /** For temporary files. */
  readonly folder: string;
  /** Gets the errors of objects that cannot be read, by key. */
  readonly failed: Map<string, CryptodlError>;
}

/**
 * Calls `act` while the relation `rows` holds the rows of the valid objects, each with the ordinal of its object. Resolves with undefined if no
 * object is valid. Rejects with errors that do not concern the content of the objects (disk, memory, interruption, bugs).
 */
export async function withRows<T>(
  session: DuckDbSession,
  { folder, failed, ...objects }: AuditedObjects,
  ordinalOf: (object: ArchiveObject) => number,
  act: (read: ReadObjects) => Promise<T>,
): Promise<T | undefined> {
  const targetPath = join(folder, randomUUID());
  const conversion: Conversion = {
    ...objects,
    settings: AUDITED,
    csvPath: `${targetPath}.csv`,
    targetPath,
    memoryCsvBytes: MEMORY_CSV_BYTES,
    metadata: () => ({ cryptodl: '{}' }),
  };
  try {
    const read = await readObjects(session, conversion, failed, (inputs) =>
      inputs.map(({ received }) => ordinalOf(received.object)),
    );
    return read === undefined ? undefined : await act(read);
  } finally {
    await removeScratch(conversion);
  }
}
