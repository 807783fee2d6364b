/** The SQL that sorts the rows of a file, finds duplicates and conflicts, and writes the sorted rows. */
import { sortExpression, writtenColumns } from './columns.js';
import type { SqlContext, FileMetadata } from './conversion.js';
import { quoteName, quoteText, quotePath } from './sql.js';
import { ORDINAL, NUMBER, sortColumns, fromAll, names, copyTo, DUPLICATE, sortKey } from './statements.js';

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
export function copyByKey(context: SqlContext, metadata: FileMetadata): string {
  const { spec } = context;
  const all = fromAll(context, names(spec));
  const keys = sortColumns(spec).map((column) => `${sortExpression(column)} NULLS FIRST`);
  return copyTo(context, `(SELECT * FROM (${all}) ORDER BY ${keys.join(', ')})`, metadata);
}

/** Where the sorted rows of a file are: in a Parquet file at this path if they are too many for memory, else in a table. */
type SortedPath = string | undefined;

/** Sorts the rows of the file, with the ordinal of each row and a mark for exact duplicates within its object. */
export function sortRows(context: SqlContext, path: SortedPath): string {
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
export function sortedCounts({ spec }: SqlContext, path: SortedPath): string {
  const key = sortKey(spec);
  return `SELECT ord, count(*) AS rows, count_if(same) AS across, count_if(NOT same AND same_key) AS disputed
    FROM (SELECT ${ORDINAL} AS ord, ${sameAsBefore(names(spec))} AS same,
            ${key} IS NOT DISTINCT FROM lag(${key}) OVER () AS same_key
          FROM ${relationOf(path)} WHERE NOT ${DUPLICATE})
    GROUP BY ord`;
}

/** Counts in the rows, without exact duplicates, for each object: rows that share the key of another row of the object. */
export function conflictsQuery({ spec }: SqlContext, path: SortedPath): string {
  // With `asPublished`, duplicates are not marked.
  return `SELECT ${ORDINAL} AS ord, count(*) - count(DISTINCT ${sortKey(spec)}) AS conflicts
    FROM (SELECT DISTINCT ${names(spec)}, ${ORDINAL} FROM ${relationOf(path)}) GROUP BY ord`;
}

/** Writes the target from the sorted rows. `isDisputed`: rows of one key have different values, and the first published one comes first. */
export function copySorted(
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
