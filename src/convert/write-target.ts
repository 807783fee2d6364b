/** Writes the relations `rows` and `kept` to the target file: sorted and without exact duplicates within an object, except with `asPublished`. */
import { rename, rm } from 'node:fs/promises';
import type { ObjectLine } from '../model/manifest-line.js';
import type { Conversion, FileMetadata, SqlContext } from './conversion.js';
import type { ResultRow } from './duckdb.js';
import type { LoadedInput, ReadObjects } from './read-objects.js';
import {
  copyTo,
  keysQuery,
  ORDINAL,
  NUMBER,
  sortColumns,
  fromAll,
  names,
  DUPLICATE,
  sortKey,
} from './statements.js';
import { sortExpression, writtenColumns } from './columns.js';
import { quoteName, quoteText, quotePath } from './sql.js';

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

const byOrdinal = (rows: readonly ResultRow[], name: string): ReadonlyMap<number, number> =>
  new Map(rows.map((row) => [Number(row['ord']), Number(row[name])]));

/** A total order: with `asPublished` the published order, else the sort columns by value, then all columns. */
function totalOrder({ spec, settings }: SqlContext): string {
  if (settings.asPublished) return `${ORDINAL}, ${NUMBER}`;
  const leading = sortColumns(spec).map(sortExpression);
  const others = writtenColumns(spec)
    .map((column) => quoteName(column.name))
    .filter((name) => !leading.includes(name));
  return [...leading, ...others].map((expression) => `${expression} NULLS FIRST`).join(', ');
}

/** Writes the target from rows whose sort keys are unique. */
function copyByKey(context: SqlContext, metadata: FileMetadata): string {
  const { spec } = context;
  const all = fromAll(context, names(spec));
  const keys = sortColumns(spec).map((column) => `${sortExpression(column)} NULLS FIRST`);
  return copyTo(context, `(SELECT * FROM (${all}) ORDER BY ${keys.join(', ')})`, metadata);
}

/** Where the sorted rows of a file are: in a Parquet file at this path if they are too many for memory, else in a table. */
type SortedPath = string | undefined;

/** Sorts the rows of the file, with the ordinal of each row and a mark for exact duplicates within its object. */
function sortRows(context: SqlContext, path: SortedPath): string {
  const { spec, settings } = context;
  const columns = names(spec);
  const all = fromAll(context, `${columns}, ${ORDINAL}, ${NUMBER}`);
  const order = settings.asPublished ? totalOrder(context) : `${totalOrder(context)}, ${ORDINAL}, ${NUMBER}`;
  const isDuplicate = settings.asPublished ? 'false' : `same AND ${ORDINAL} = lag(${ORDINAL}) OVER ()`;
  const sorted = `SELECT ${columns}, ${ORDINAL}, ${NUMBER}, coalesce(${isDuplicate}, false) AS ${DUPLICATE}
      FROM (SELECT *, ${sameAsBefore(columns)} AS same FROM (SELECT * FROM (${all}) ORDER BY ${order}))`;
  if (path === undefined) return `CREATE OR REPLACE TEMP TABLE sorted AS ${sorted}`;
  return `COPY (${sorted}) TO ${quoteText(path)} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)`;
}

/** Whether a row equals the previous row; NULL equals NULL. */
const sameAsBefore = (columns: string): string =>
  `row(${columns}) IS NOT DISTINCT FROM lag(row(${columns})) OVER ()`;

/**
 * Counts in the sorted rows, without marked duplicates, for each object: rows, rows equal to the previous row, and rows with the same key as
 * the previous row, which may be of another object, but other values.
 */
function sortedCounts({ spec }: SqlContext, path: SortedPath): string {
  const key = sortKey(spec);
  return `SELECT ord, count(*) AS rows, count_if(same) AS across, count_if(NOT same AND same_key) AS disputed
    FROM (SELECT ${ORDINAL} AS ord, ${sameAsBefore(names(spec))} AS same,
            ${key} IS NOT DISTINCT FROM lag(${key}) OVER () AS same_key
          FROM ${relationOf(path)} WHERE NOT ${DUPLICATE})
    GROUP BY ord`;
}

/** Counts in the rows, without exact duplicates, for each object: rows that share the key of another row of the object. */
function conflictsQuery({ spec }: SqlContext, path: SortedPath): string {
  // With `asPublished`, duplicates are not marked.
  return `SELECT ${ORDINAL} AS ord, count(*) - count(DISTINCT ${sortKey(spec)}) AS conflicts
    FROM (SELECT DISTINCT ${names(spec)}, ${ORDINAL} FROM ${relationOf(path)}) GROUP BY ord`;
}

/** Writes the target from the sorted rows. `isDisputed`: rows of one key have different values, and the first published one comes first. */
function copySorted(
  context: SqlContext,
  path: SortedPath,
  { isDisputed, metadata }: { readonly isDisputed: boolean; readonly metadata: FileMetadata },
): string {
  const order = [...sortColumns(context.spec).map(sortExpression), ORDINAL, NUMBER].join(', ');
  return copyTo(
    context,
    `(SELECT * FROM ${relationOf(path)} WHERE NOT ${DUPLICATE}${isDisputed ? ` ORDER BY ${order}` : ''})`,
    metadata,
  );
}

const relationOf = (path: SortedPath): string =>
  path === undefined ? 'sorted' : `read_parquet(${quotePath(path)}, hive_partitioning = false)`;
