/** Compares the rows of two sides by their values: rows that differ, and rows that only one side has. */
import { instantExpression } from '../../convert/columns.js';
import type { DuckDb, ResultRow } from '../../convert/duckdb.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import { dayText } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import type { ColumnSpec } from '../../exchange/facts.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import type { AuditFinding } from './findings.js';

/** One side of a comparison. `rows`: what is compared, as the text after FROM; `all`: the rows that the other side need not have more of, by default `rows`. */
interface Side {
  readonly name: string;
  readonly rows: string;
  readonly all?: string;
}

/** The number of the day of a row. */
export function dayExpression(spec: DatasetSpec): string {
  return `((epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS})`;
}

/** In the order of the findings. `rows-missing`: only the second side has them; `rows-extra`: only the first one. */
const KINDS = ['rows-differ', 'rows-missing', 'rows-extra'] as const;

/** Compares these columns. EXCEPT drops repeated rows, which are not a difference. `key`: that of the affected object. */
export async function compareRows(
  duckdb: DuckDb,
  { key, spec }: { readonly key: string; readonly spec: DatasetSpec },
  columns: readonly ColumnSpec[],
  sides: readonly [Side, Side],
): Promise<AuditFinding[]> {
  const names = columns.filter(({ type }) => type !== 'symbol').map(({ name }) => name);
  const values = names.filter((name) => !spec.sort.includes(name));
  const ofSide = (name: string): string[] => sides.map((side) => `${side.name}.${name}`);
  const counts = values.map(
    (name) => `${quoteText(name)}: count_if(${ofSide(name).map(quoteName).join(' IS DISTINCT FROM ')})`,
  );
  const found = await duckdb.rows(`WITH difference AS (${differences(names, spec, sides)})
    SELECT ".kind" AS kind, {${['".rows": count(*)', ...counts].join(', ')}} AS counts,
      list_sort(list(DISTINCT ".day")) AS days, first(difference ORDER BY ${spec.sort.map(quoteName).join(', ')}) AS example
    FROM difference GROUP BY ".kind"`);
  return KINDS.flatMap((kind) => {
    const { counts: ofKind, days, example } = found.find((row) => row['kind'] === kind) ?? {};
    if (ofKind === undefined) return [];
    const count = (name: string): number => Number((ofKind as ResultRow)[name]);
    const different = kind === 'rows-differ' ? values.filter((name) => count(name) > 0) : [];
    const where =
      kind === 'rows-differ'
        ? { columns: Object.fromEntries(different.map((name) => [name, count(name)])) }
        : { days: (days as readonly unknown[]).map((day) => dayText(Number(day))) };
    const shown = [...spec.sort, ...different.flatMap(ofSide)];
    const first = Object.fromEntries(shown.map((name) => [name, (example as ResultRow)[name]]));
    return [{ kind, key, rows: count('.rows'), ...where, example: first }];
  });
}

/** A row for each key of which the sides have other rows, with the values of both. */
function differences(
  names: readonly string[],
  spec: DatasetSpec,
  [first, second]: readonly [Side, Side],
): string {
  const { sort } = spec;
  const columns = names.map(quoteName).join(', ');
  const day = dayExpression(spec);
  const only = (one: Side, other: Side): string =>
    `(SELECT *, ${day} AS ".day" FROM (SELECT ${columns} FROM ${one.rows} EXCEPT SELECT ${columns} FROM ${other.all ?? other.rows}))`;
  const isSame = sort.map(quoteName).map((name) => `one.${name} IS NOT DISTINCT FROM other.${name}`);
  const selected = names.map((name) =>
    sort.includes(name)
      ? `coalesce(one.${quoteName(name)}, other.${quoteName(name)}) AS ${quoteName(name)}`
      : `one.${quoteName(name)} AS ${quoteName(`${first.name}.${name}`)}, other.${quoteName(name)} AS ${quoteName(`${second.name}.${name}`)}`,
  );
  return `SELECT ${selected.join(', ')}, coalesce(one.".day", other.".day") AS ".day",
      CASE WHEN one.".day" IS NULL THEN 'rows-missing' WHEN other.".day" IS NULL THEN 'rows-extra' ELSE 'rows-differ' END AS ".kind"
    FROM ${only(first, second)} AS one FULL JOIN ${only(second, first)} AS other ON ${isSame.join(' AND ')}`;
}
