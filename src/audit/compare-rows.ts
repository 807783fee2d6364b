/** Compares the rows of two sides by their values: rows that differ, and rows that only one side has. */
import { instantExpression } from '../convert/columns.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteName } from '../convert/sql.js';
import { DAY_MS, dayText } from '../model/calendar.js';
import type { ColumnSpec } from '../source/facts.js';
import type { DatasetSpec } from '../source/venue.js';
import type { AuditFinding } from './audit-finding.js';

export type Difference = Omit<AuditFinding, 'key'>;

/** One side of a comparison. `rows`: what is compared, as the text after FROM; `all`: the rows that the other side need not have more of. */
interface Side {
  readonly name: string;
  readonly rows: string;
  readonly all: string;
}

/** The number of the day of a row. */
export function dayExpression(spec: DatasetSpec): string {
  return `((epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS})`;
}

/**
 * Compares these columns. EXCEPT drops repeated rows, which are not a difference. `rows-missing`: rows that only the second side has;
 * `rows-extra`: rows that only the first one has.
 */
export async function compareRows(
  session: DuckDbSession,
  spec: DatasetSpec,
  compared: readonly ColumnSpec[],
  sides: readonly [Side, Side],
): Promise<Difference[]> {
  const columns = compared.filter(({ type }) => type !== 'symbol').map(({ name }) => name);
  const values = columns.filter((name) => !spec.sort.includes(name));
  const ofSide = (name: string): string[] => sides.map((side) => quoteName(`${side.name}.${name}`));
  await session.run(differenceTable(spec, columns, sides));
  const found: Difference[] = [];
  for (const kind of ['rows-differ', 'rows-missing', 'rows-extra'] as const) {
    const from = `FROM difference WHERE ".kind" = '${kind}'`;
    const counted = values.map(
      (name) => `count_if(${ofSide(name).join(' IS DISTINCT FROM ')}) AS ${quoteName(name)}`,
    );
    const [counts = {}] = await session.rows(`SELECT count(*) AS ".rows", ${counted.join(', ')} ${from}`);
    const rows = Number(counts['.rows']);
    if (rows === 0) continue;
    const different = kind === 'rows-differ' ? values.filter((name) => Number(counts[name]) > 0) : [];
    const keys = spec.sort.map(quoteName).join(', ');
    const [example = {}] = await session.rows(
      `SELECT ${[keys, ...different.flatMap(ofSide)].join(', ')} ${from} ORDER BY ${keys} LIMIT 1`,
    );
    const days = await session.rows(`SELECT DISTINCT ".day" AS day ${from} ORDER BY day`);
    const where =
      kind === 'rows-differ'
        ? { columns: Object.fromEntries(different.map((name) => [name, Number(counts[name])])) }
        : { days: days.map(({ day }) => dayText(Number(day))) };
    found.push({ kind, rows, ...where, example });
  }
  return found;
}

/** Makes the table `difference`: a row for each key of which the sides have other rows, with the values of both. */
function differenceTable(
  spec: DatasetSpec,
  columns: readonly string[],
  [first, second]: readonly [Side, Side],
): string {
  const names = columns.map(quoteName).join(', ');
  const only = (one: Side, other: Side): string =>
    `(SELECT *, ${dayExpression(spec)} AS ".day" FROM (SELECT ${names} FROM ${one.rows} EXCEPT SELECT ${names} FROM ${other.all}))`;
  const isSame = spec.sort.map(
    (name) => `one.${quoteName(name)} IS NOT DISTINCT FROM other.${quoteName(name)}`,
  );
  const selected = columns.map((name) =>
    spec.sort.includes(name)
      ? `coalesce(one.${quoteName(name)}, other.${quoteName(name)}) AS ${quoteName(name)}`
      : `one.${quoteName(name)} AS ${quoteName(`${first.name}.${name}`)}, other.${quoteName(name)} AS ${quoteName(`${second.name}.${name}`)}`,
  );
  return `CREATE OR REPLACE TEMP TABLE difference AS
    SELECT ${selected.join(', ')}, coalesce(one.".day", other.".day") AS ".day",
      CASE WHEN one.".day" IS NULL THEN 'rows-missing' WHEN other.".day" IS NULL THEN 'rows-extra' ELSE 'rows-differ' END AS ".kind"
    FROM ${only(first, second)} AS one FULL JOIN ${only(second, first)} AS other ON ${isSame.join(' AND ')}`;
}
