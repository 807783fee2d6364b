/** Writes the relations `rows` and `kept` to the target file: sorted and without exact duplicates within an object, except with `asPublished`. */
import { rename, rm } from 'node:fs/promises';
import type { ObjectLine } from '../model/manifest-line.js';
import type { Conversion, FileMetadata } from './conversion.js';
import type { Row } from './duckdb.js';
import type { ReadObjects } from './read-objects.js';
import type { LoadedInput } from './load-rows.js';
import { copyByKey, sortRows, sortedCounts, conflictsQuery, copySorted } from './sort-rows-sql.js';
import { copyTo, keysQuery } from './statements.js';

/** Numbers that were not counted are absent. */
interface Counts {
  /** Rows of an object by ordinal, without removed duplicates. */
  readonly ofObject?: ReadonlyMap<number, number>;
  /** Rows of an object, by ordinal, that share the key of another row but differ in values; none for datasets without a key. */
  readonly conflicts?: ReadonlyMap<number, number>;
  /** Rows of the file. */
  readonly rows?: number;
  /** Exact duplicates across objects, which the file contains; 0 with `asPublished`. */
  readonly across?: number;
}

/** If rows are added to a larger file, sorting uses the disk. */
const MEMORY_KEPT_BYTES = 16 * 1024 * 1024;

/** Whether the existing file is too large for sorting in memory. `kept`: the lines of the file that stay. */
export const keptIsLarge = (kept: readonly ObjectLine[]): boolean =>
  kept.some((line) => line.fileBytes > MEMORY_KEPT_BYTES);

/** Whether every row of an object is strictly after the previous one. */
export const areOrdered = (inputs: readonly LoadedInput[]): boolean =>
  inputs.every(({ row }) => Number(row['unordered']) === 0);

/** Rows that are in order are written as they are, and not counted. */
export async function writeTarget(conversion: Conversion, { inputs, staged }: ReadObjects): Promise<Counts> {
  const { duckdb, settings, targetPath, existing: { kept = [] } = {} } = conversion;
  const metadata = conversion.metadata(inputs.map(({ received }) => received));
  if (kept.length === 0 && areOrdered(inputs)) {
    if (staged !== undefined && settings.format === 'parquet') await rename(staged, targetPath);
    else await duckdb.run(copyTo(conversion, 'rows', metadata));
    return {};
  }
  if (staged !== undefined || keptIsLarge(kept))
    return sortThrough(`${conversion.csvPath}.sorted`, conversion, metadata);
  // Usually days are added to a file, and there are no duplicates: this way takes two thirds of the time.
  if (!settings.asPublished) {
    const [counted] = await duckdb.rows(keysQuery(conversion));
    const rows = Number(counted?.['rows']);
    if (Number(counted?.['keys']) === rows) {
      await duckdb.run(copyByKey(conversion, metadata));
      return { rows };
    }
  }
  return sortThrough(undefined, conversion, metadata);
}

/** Sorts once, into a table or a file; the further steps read it sequentially. */
async function sortThrough(
  path: string | undefined,
  conversion: Conversion,
  metadata: FileMetadata,
): Promise<Counts> {
  const { duckdb, spec, settings } = conversion;
  const { asPublished } = settings;
  try {
    await duckdb.run(sortRows(conversion, path));
    const counts = await duckdb.rows(sortedCounts(conversion, path));
    const sum = (name: string): number => counts.reduce((total, row) => total + Number(row[name]), 0);
    const isDisputed = !asPublished && sum('disputed') > 0;
    const isSought = spec.hasKey && (isDisputed || asPublished);
    const conflicts = isSought ? await duckdb.rows(conflictsQuery(conversion, path)) : [];
    await duckdb.run(copySorted(conversion, path, { isDisputed, metadata }));
    return {
      ofObject: byOrdinal(counts, 'rows'),
      conflicts: byOrdinal(conflicts, 'conflicts'),
      rows: sum('rows'),
      across: asPublished ? 0 : sum('across'),
    };
  } finally {
    if (path !== undefined) await rm(path, { force: true });
  }
}

const byOrdinal = (rows: readonly Row[], name: string): ReadonlyMap<number, number> =>
  new Map(rows.map((row) => [Number(row['ord']), Number(row[name])]));
