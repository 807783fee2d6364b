/** Writes the relations `rows` and `kept` to the target file: sorted and without exact duplicates within an object, except with `asPublished`. */
import { rename, rm } from 'node:fs/promises';
import type { ObjectLine } from '../lake/manifest-line.js';
import { hasIds } from './columns.js';
import type { Conversion, FileMetadata } from './conversion.js';
import type { Row, DuckDbSession } from './duckdb.js';
import {
  conflictsQuery,
  copySorted,
  copyStatement,
  distinctQuery,
  keysQuery,
  sortedCounts,
  sortIntoFile,
  totalsQuery,
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
  /** Rows of an object, by ordinal, that share an id with an earlier row but differ in values; 0 for datasets without ids. */
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
  target: Target,
): Promise<Counts> {
  const { staged, isOrdered, metadata } = target;
  const isParquet = conversion.settings.format === 'parquet';
  if (isOrdered) {
    if (staged !== undefined && isParquet) await rename(staged, conversion.targetPath);
    else await session.run(copyStatement(conversion, { order: 'as-is', metadata }));
    return NOT_COUNTED;
  }
  return staged !== undefined || keptIsLarge(conversion.kept?.lines ?? [])
    ? sortOnDisk(session, conversion, metadata)
    : sortInMemory(session, conversion, metadata);
}

async function sortInMemory(
  session: DuckDbSession,
  conversion: Conversion,
  metadata: FileMetadata,
): Promise<Counts> {
  const { settings, kept } = conversion;
  if (!settings.asPublished) {
    const [counted] = await session.rows(keysQuery(conversion));
    const rows = Number(counted?.['rows']);
    // Usually the rows are only out of order, or days are added to a file, and there are no duplicates.
    if (Number(counted?.['keys']) === rows) {
      await session.run(copyStatement(conversion, { order: 'by-key', metadata }));
      return { ...NOT_COUNTED, rows };
    }
  }
  const unique = settings.asPublished ? [] : await session.rows(distinctQuery(conversion));
  await session.run(copyStatement(conversion, { order: 'total', metadata }));
  const rows = byOrdinal(unique, 'rows');
  const conflicts = hasIds(conversion.spec)
    ? byOrdinal(await session.rows(conflictsQuery(conversion)), 'ids')
    : new Map<number, number>();
  const rowsOf = (ordinal: number): number | undefined => rows.get(ordinal);
  const conflictsOf = (ordinal: number): number => conflicts.get(ordinal) ?? 0;
  if (kept === undefined && conversion.received.length === 1) return { ...NOT_COUNTED, rowsOf, conflictsOf };
  const [totals] = await session.rows(totalsQuery(conversion));
  return { rowsOf, conflictsOf, rows: Number(totals?.['rows']), across: Number(totals?.['across']) };
}

function byOrdinal(rows: readonly Row[], name: string): ReadonlyMap<number, number> {
  return new Map(rows.map((row) => [Number(row['ord']), Number(row[name])]));
}

/** Sorts once into a file; the further steps read that file sequentially. */
async function sortOnDisk(
  session: DuckDbSession,
  conversion: Conversion,
  metadata: FileMetadata,
): Promise<Counts> {
  const path = `${conversion.csvPath}.sorted`;
  try {
    return await sortThroughFile(path, session, conversion, metadata);
  } finally {
    await rm(path, { force: true });
  }
}

async function sortThroughFile(
  path: string,
  session: DuckDbSession,
  conversion: Conversion,
  metadata: FileMetadata,
): Promise<Counts> {
  await session.run(sortIntoFile(conversion, path));
  await session.run(copySorted(conversion, path, metadata));
  const counts = await session.rows(sortedCounts(conversion, path));
  const [rows, conflicts] = [byOrdinal(counts, 'rows'), byOrdinal(counts, 'ids')];
  const sum = (name: string): number => counts.reduce((total, row) => total + Number(row[name]), 0);
  return {
    rowsOf: (ordinal) => rows.get(ordinal),
    conflictsOf: (ordinal) => (hasIds(conversion.spec) ? (conflicts.get(ordinal) ?? 0) : 0),
    rows: sum('rows'),
    across: conversion.settings.asPublished ? 0 : sum('across'),
  };
}
