/** The tables of a lake for a query: the selected series and days, and the files that hold them. */
import { bringIn } from '../../files/backing.js';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { tableName, type LakeTable } from '../../lake/catalogue/views.js';
import type { Series } from '../../model/task.js';
import { listText } from '../../model/units.js';
import type { QueryFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { shownPath } from '../../text/printable.js';
import { filesOfRange, type LakeFile } from '../../lake/catalogue/lake-file.js';

export interface ShownRows {
  readonly series: readonly Series[];
  readonly range: Partial<DayRange>;
}

/** The series and days that the flags select; without flags, the whole lake. */
export async function shownBy(request: VerbRequest<QueryFlag>): Promise<ShownRows> {
  const { resolved, exchange, clock } = request;
  const range = givenRange(resolved.options, resolved.options.nowMs ?? clock.now(), exchange) ?? {};
  const { held } = await readVerbLake(request);
  return { series: held.length === 0 ? held : await selectGiven(held, request), range };
}

/** The tables with at least one readable file, ordered by name, with the files that may have shown rows. Rejects for a damaged manifest. */
export async function tablesOf(
  root: string,
  { exchange, observer, signal }: VerbRequest<never>,
  { series: selected, range }: ShownRows,
): Promise<LakeTable[]> {
  const tables = new Map<string, LakeTable>();
  // A table without a row of the range has its columns from one file.
  const spare = new Map<string, readonly LakeFile[]>();
  const unsound: string[] = [];
  const overlapping: string[] = [];
  for await (const held of openCatalogue(root, exchange, signal).series(selected)) {
    if (held.damage !== undefined) throw held.damage;
    unsound.push(...held.unsound);
    overlapping.push(...held.overlapping);
    if (held.files.length === 0) continue;
    const { series, spec } = held;
    const name = tableName(series);
    const known = tables.get(name)?.files ?? [];
    const files = [...known, ...(spec === undefined ? held.files : filesOfRange(held, spec, range))];
    spare.set(name, held.files.slice(0, 1));
    tables.set(name, { ...series, hasInterval: series.interval !== undefined, files, spec });
  }
  warnOf(unsound, 'missing or different from its commit; not queried (cryptodl verify gives details)');
  warnOf(overlapping, 'CSV with some days that Parquet files hold too; not queried');
  const all = [...tables]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, table]) => (table.files.length > 0 ? table : { ...table, files: spare.get(name) ?? [] }));
  await bringIn(...all.flatMap(({ files }) => files.map(({ path }) => path)));
  return all;

  function warnOf(files: readonly string[], why: string): void {
    if (files.length > 0) observer.warn(`${listText(files.map(shownPath), 1)}: ${why}`);
  }
}
