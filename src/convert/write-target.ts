/** Writes the relations `rows` and `kept` to the target file: sorted and without exact duplicates within an object, except with `asPublished`. */
import { rename, rm } from 'node:fs/promises';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { Conversion, FileMetadata } from './conversion.js';
import type { Row, DuckDbSession } from './duckdb.js';
import {
  conflictsQuery,
  copyByKey,
  copySorted,
  copyTo,
  keysQuery,
  sortedCounts,
  sortRows,
} from './statements.js';

export interface Target {
  /** Path of the file with `rows`; undefined when they are in memory. */
  readonly staged: string | undefined;
  /** Every row is strictly after the previous row, and `kept` is empty. */
  readonly isOrdered: boolean;
  readonly metadata: FileMetadata;
}

export interface Counts {
  /** Rows of an object by ordinal, without removed duplicates; undefined if the rows were not counted. */
  readonly rowsOf: (ordinal: number) => number | undefined;
  /** Rows of an object, by ordinal, that share the key of another row but differ in values; 0 for datasets without a key. */
  readonly conflictsOf: (ordinal: number) => number;
  /** Rows of the file; undefined if they were not counted. */
  readonly rows: number | undefined;
  /** Exact duplicates across objects, which the file contains; 0 with `asPublished`. */
  readonly across: number;
}

const NOT_COUNTED: Counts = { rowsOf: () => undefined, conflictsOf: () => 0, rows: undefined, across: 0 };

/** If rows are added to a larger file, sorting uses the disk. */
const MEMORY_KEPT_BYTES = 16 * 1024 * 1024;

/** Whether the existing file is too large for sorting in memory. `kept`: the lines of the file that stay. */
export function keptIsLarge(kept: readonly ObjectLine[]): boolean {
  return kept.some((line) => line.fileBytes > MEMORY_KEPT_BYTES);
}

/** Rows that are in order are written as they are, and not counted. */
export async function writeTarget(
  session: DuckDbSession,
  conversion: Conversion,
  { staged, isOrdered, metadata }: Target,
): Promise<Counts> {
  const isLarge = staged !== undefined || keptIsLarge(conversion.existing?.kept ?? []);
  if (isOrdered) {
    if (staged !== undefined && conversion.settings.format === 'parquet')
      await rename(staged, conversion.targetPath);
    else await session.run(copyTo(conversion, 'rows', metadata));
    return NOT_COUNTED;
  }
  if (isLarge) return sortThrough(`${conversion.csvPath}.sorted`, session, conversion, metadata);
  // Usually days are added to a file, and there are no duplicates: this way takes two thirds of the time.
  if (!conversion.settings.asPublished) {
    const [counted] = await session.rows(keysQuery(conversion));
    const rows = Number(counted?.['rows']);
    if (Number(counted?.['keys']) === rows) {
      await session.run(copyByKey(conversion, metadata));
      return { ...NOT_COUNTED, rows };
    }
  }
  return sortThrough(undefined, session, conversion, metadata);
}

/** Sorts once, into a table or a file; the further steps read it sequentially. */
async function sortThrough(
  path: string | undefined,
  session: DuckDbSession,
  conversion: Conversion,
  metadata: FileMetadata,
): Promise<Counts> {
  try {
    await session.run(sortRows(conversion, path));
    const counts = await session.rows(sortedCounts(conversion, path));
    const { spec, settings } = conversion;
    const isDisputed = !settings.asPublished && counts.some((row) => Number(row['disputed']) > 0);
    const conflicts =
      spec.hasKey && (isDisputed || settings.asPublished)
        ? await session.rows(conflictsQuery(conversion, path))
        : [];
    await session.run(copySorted(conversion, path, { isDisputed, metadata }));
    return countsOf(conversion, counts, byOrdinal(conflicts, 'conflicts'));
  } finally {
    if (path !== undefined) await rm(path, { force: true });
  }
}

function countsOf(
  { settings }: Conversion,
  counts: readonly Row[],
  conflicts: ReadonlyMap<number, number>,
): Counts {
  const rows = byOrdinal(counts, 'rows');
  const sum = (name: string): number => counts.reduce((total, row) => total + Number(row[name]), 0);
  return {
    rowsOf: (ordinal) => rows.get(ordinal),
    conflictsOf: (ordinal) => conflicts.get(ordinal) ?? 0,
    rows: sum('rows'),
    across: settings.asPublished ? 0 : sum('across'),
  };
}

function byOrdinal(rows: readonly Row[], name: string): ReadonlyMap<number, number> {
  return new Map(rows.map((row) => [Number(row['ord']), Number(row[name])]));
}
