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
export interface Side {
  readonly name: string;
  readonly rows: string;
  readonly all: string;
}

const DAY = quoteName('.day');

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
  const columns = compared.filter(({ type }) => type !== 'symbol');
  const names = columns.map(({ name }) => quoteName(name)).join(', ');
  const only = (one: Side, other: Side): Promise<void> =>
    session.run(
      `CREATE OR REPLACE TEMP TABLE ${one.name} AS SELECT *, ${dayExpression(spec)} AS ${DAY}
       FROM (SELECT ${names} FROM ${one.rows} EXCEPT SELECT ${names} FROM ${other.all})`,
    );
  const [first, second] = sides;
  await only(first, second);
  await only(second, first);
  const [one, other] = [first.name, second.name];
  const found = [
    await differing(session, columns, spec.sort, [one, other]),
    await alone(session, spec.sort, { kind: 'rows-missing', side: other, other: one }),
    await alone(session, spec.sort, { kind: 'rows-extra', side: one, other }),
  ];
  return found.flatMap((difference) => difference ?? []);
}

/** Never NULL. */
function isSame(name: string, one: string, other: string): string {
  return `(${one}.${quoteName(name)} IS NOT DISTINCT FROM ${other}.${quoteName(name)})`;
}

async function differing(
  session: DuckDbSession,
  columns: readonly ColumnSpec[],
  sort: readonly string[],
  [one, other]: readonly [string, string],
): Promise<Difference | undefined> {
  const values = columns.map(({ name }) => name).filter((name) => !sort.includes(name));
  const joined = `${one} JOIN ${other} ON ${sort.map((name) => isSame(name, one, other)).join(' AND ')}`;
  const counted = values.map((name) => `count_if(NOT ${isSame(name, one, other)}) AS ${quoteName(name)}`);
  const [counts = {}] = await session.rows(
    `SELECT count(*) AS ".rows", ${counted.join(', ')} FROM ${joined}`,
  );
  const rows = Number(counts['.rows']);
  if (rows === 0) return undefined;
  const different = values.filter((name) => Number(counts[name]) > 0);
  const keys = sort.map((name) => `${other}.${quoteName(name)}`);
  const shown = different.flatMap((name) =>
    [one, other].map((side) => `${side}.${quoteName(name)} AS ${quoteName(`${side}.${name}`)}`),
  );
  const [example = {}] = await session.rows(
    `SELECT ${[...keys, ...shown].join(', ')} FROM ${joined} ORDER BY ${keys.join(', ')} LIMIT 1`,
  );
  const numbers = Object.fromEntries(different.map((name) => [name, Number(counts[name])]));
  return { kind: 'rows-differ', rows, columns: numbers, example };
}

/** Rows whose key only one side has. */
async function alone(
  session: DuckDbSession,
  sort: readonly string[],
  {
    kind,
    side,
    other,
  }: { readonly kind: AuditFinding['kind']; readonly side: string; readonly other: string },
): Promise<Difference | undefined> {
  const on = sort.map((name) => isSame(name, side, other)).join(' AND ');
  const from = `FROM ${side} ANTI JOIN ${other} ON ${on}`;
  const days = await session.rows(`SELECT ${DAY} AS day, count(*) AS n ${from} GROUP BY day ORDER BY day`);
  if (days.length === 0) return undefined;
  const keys = sort.map(quoteName).join(', ');
  const [example = {}] = await session.rows(`SELECT ${keys} ${from} ORDER BY ${keys} LIMIT 1`);
  return {
    kind,
    rows: days.reduce((sum, { n }) => sum + Number(n), 0),
    days: days.map((row) => dayText(Number(row['day']))),
    example,
  };
}
