/** A query on the lake. Takes no lock, sends no request and writes nothing into the lake. */
import { listText } from '../model/units.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import type { QueryResult } from '../convert/query-stream.js';
import { verbEngine } from '../convert/duckdb.js';
import { bringIn } from '../lake/backing.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { readVerbLake } from '../select/held-series.js';
import type { Source } from '../source/source.js';
import { findDataset } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { absolutePath, shownPath } from '../text/printable.js';
import { noViews } from './explain-errors.js';
import { openCatalogue } from '../catalogue/catalogue.js';
import { parseStatement, runQuery } from './run-query.js';
import { tableName, viewOf } from '../catalogue/views.js';
import type { LakeTable } from '../catalogue/views.js';

/** An open result. The caller must close it. */
export interface LakeResult extends QueryResult {
  readonly close: () => Promise<void>;
}

/**
 * Runs a query. Rejects with usage errors for its faults, also while the caller reads the rows. `only`: the series that the views
 * show, instead of all series of the lake.
 */
export async function queryLake(
  text: string,
  request: VerbRequest,
  only?: readonly Series[],
): Promise<LakeResult> {
  const engine = verbEngine('sql', request, Number.POSITIVE_INFINITY);
  let session: DuckDbSession | undefined;
  const close = async (): Promise<void> => {
    // The caller may have ended before the last row, so the query may still run.
    engine.interrupt();
    session?.close();
    await engine.end();
  };
  try {
    session = await engine.session();
    const names = await parseStatement(session, text);
    const root = absolutePath(request.resolved.options.out, request.surroundings.home);
    const held = only ?? (await readVerbLake(request)).held;
    const named = held.filter((series) => names.has(tableName(series).toLowerCase()));
    // A query that names no table of the lake may list the views (SHOW TABLES), so it gets all of them.
    const tables = await tablesOf(root, request, named.length > 0 ? named : held);
    const isEmpty = tables.length === 0;
    if (isEmpty && LISTS_OF_VIEWS.some((name) => names.has(name))) throw noViews(root, held.map(tableName));
    const specOf = (table: LakeTable): DatasetSpec | undefined => specIn(request.source, table);
    const answer = await runQuery(session, { root, text, tables, specOf }).catch((error: unknown) => {
      const isUnknown = error instanceof Error && error.message.startsWith('Table with name ');
      throw isEmpty && isUnknown ? noViews(root, held.map(tableName)) : error;
    });
    return { ...answer, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Table names in DuckDB's tree for `SHOW TABLES`, and for `SHOW ALL TABLES` or `DESCRIBE`. */
const LISTS_OF_VIEWS = ['"tables"', '__show_tables_expanded'];

/** The CREATE VIEW statements, each with a semicolon. Throws a usage error for an empty lake. */
export async function* lakeViews(request: VerbRequest): AsyncGenerator<string> {
  const { root, held } = await readVerbLake(request);
  const tables = await tablesOf(root, request, held);
  if (tables.length === 0) throw noViews(root, held.map(tableName));
  for (const table of tables) yield `${await viewOf(table, specIn(request.source, table), true)};\n`;
}

/** The tables with at least one readable file, ordered by name. Rejects for a damaged manifest. */
async function tablesOf(
  root: string,
  { source, observer, signal }: VerbRequest,
  selected: readonly Series[],
): Promise<LakeTable[]> {
  const tables = new Map<string, LakeTable>();
  const unsound: string[] = [];
  const overlapping: string[] = [];
  for await (const held of openCatalogue(root, source, signal).series(selected)) {
    if (held.damage !== undefined) throw held.damage;
    unsound.push(...held.unsound);
    overlapping.push(...held.overlapping);
    if (held.files.length === 0) continue;
    const { market, dataset, interval } = held.series;
    const name = tableName(held.series);
    const files = [...(tables.get(name)?.files ?? []), ...held.files];
    tables.set(name, { market, dataset, hasInterval: interval !== undefined, files });
  }
  warnOf(unsound, 'missing or different from its commit; not queried (cryptodl verify gives details)');
  warnOf(overlapping, 'CSV with some days that Parquet files hold too; not queried');
  const all = [...tables].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, table]) => table);
  await bringIn(all.flatMap(({ files }) => files.map(({ path }) => path)));
  return all;

  function warnOf(files: readonly string[], why: string): void {
    if (files.length > 0) observer.warn(`${listText(files.map(shownPath), 1)}: ${why}`);
  }
}

function specIn(venue: Source, { market, dataset }: LakeTable): DatasetSpec | undefined {
  return findDataset(venue, market, dataset);
}
