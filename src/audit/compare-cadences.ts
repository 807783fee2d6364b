/** Compares the monthly object with the daily objects of the same days, row by row. */
import { startOfDay } from '../model/calendar.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import type { AuditFinding } from './audit-finding.js';
import { quoteName, timestampLiteral } from '../convert/sql.js';
import type { ColumnSpec } from '../source/facts.js';
import { archivedColumns, rowSeconds } from '../source/venue.js';
import { instantExpression } from '../convert/columns.js';
import type { Conversion } from '../convert/conversion.js';

/** The ordinal of the monthly object. The ordinal of a daily object is its day number. */
export const MONTHLY = -1;
const ORDINAL = quoteName('.ordinal');

export interface Comparison {
  readonly findings: readonly AuditFinding[];
  /** Distinct rows of the daily objects. */
  readonly rows: number;
}

type Declared = Pick<Conversion, 'spec' | 'series'>;

/**
 * The relation `rows` must hold the rows of both cadences. `days`: days with a daily object, ascending. `key`: key of the
 * monthly object.
 */
export async function compareCadences(
  session: DuckDbSession,
  declared: Declared,
  { days, key }: { readonly days: readonly number[]; readonly key: string },
): Promise<Comparison> {
  const { spec } = declared;
  await session.run(sideOf(declared, 'monthly', `${ORDINAL} = ${MONTHLY} AND (${within(declared, days)})`));
  await session.run(sideOf(declared, 'daily', `${ORDINAL} <> ${MONTHLY}`));
  const rows = await count(session, 'SELECT count(*) AS n FROM daily');
  const emptyDays = await daysWithoutRows(session, declared);
  await session.run(remainder(declared, 'monthly', 'daily'));
  await session.run(remainder(declared, 'daily', 'monthly'));
  const shift = await shiftOf(session, declared, rows);
  if (shift !== undefined)
    return { rows, findings: [{ kind: 'labels-shift', key, rows: shift.rows, shiftMs: shift.ms }] };
  const found = [
    await shortMonth(session, declared, emptyDays),
    await differing(session, archivedValues(declared), spec.sort),
    await onlyIn(session, declared, { side: 'daily', other: 'monthly', kind: 'rows-missing', emptyDays }),
    await onlyIn(session, declared, { side: 'monthly', other: 'daily', kind: 'rows-extra', emptyDays: [] }),
  ];
  return { rows, findings: found.flatMap((finding) => (finding === undefined ? [] : [{ ...finding, key }])) };
}

/** Number of rows of the monthly object on days without a daily object; `month`: all days of the month. */
export function rowsWithoutDay(
  session: DuckDbSession,
  declared: Declared,
  { days, month }: { readonly days: readonly number[]; readonly month: readonly number[] },
): Promise<number> {
  const others = month.filter((day) => !days.includes(day));
  if (others.length === 0) return Promise.resolve(0);
  return count(
    session,
    `SELECT count(*) AS n FROM rows WHERE ${ORDINAL} = ${MONTHLY} AND (${within(declared, others)})`,
  );
}

/** Rows of the monthly object on days that are holes in the daily cadence, and so cannot be compared. */
export async function rowsOfHoles(
  session: DuckDbSession,
  declared: Declared & { readonly holes: readonly number[] },
  key: string,
): Promise<AuditFinding[]> {
  const { holes, spec } = declared;
  if (holes.length === 0) return [];
  const days = await session.rows(
    `SELECT CAST(CAST(${instantExpression(spec)} AS DATE) AS VARCHAR) AS day, count(*) AS n FROM rows
     WHERE ${ORDINAL} = ${MONTHLY} AND (${within(declared, holes)}) GROUP BY day ORDER BY day`,
  );
  if (days.length === 0) return [];
  const rows = days.reduce((sum, { n }) => sum + Number(n), 0);
  return [{ kind: 'rows-extra', key, rows, days: days.map(({ day }) => String(day)) }];
}

type Side = 'monthly' | 'daily';
type Found = Omit<AuditFinding, 'key'> | undefined;

function archivedValues({ spec }: Declared): readonly ColumnSpec[] {
  return archivedColumns(spec).filter(({ type }) => type !== 'symbol');
}

function names(declared: Declared): string {
  return archivedValues(declared)
    .map(({ name }) => quoteName(name))
    .join(', ');
}

/** Drops exact duplicates: repeated rows are not a difference between the cadences. */
function sideOf(declared: Declared, side: Side, where: string): string {
  return `CREATE OR REPLACE TEMP TABLE ${side} AS SELECT DISTINCT ${names(declared)} FROM rows WHERE ${where}`;
}

function remainder(declared: Declared, side: Side, other: Side): string {
  return `CREATE OR REPLACE TEMP TABLE ${side}_only AS
    SELECT *, ${instantExpression(declared.spec)} AS ".instant" FROM (
      SELECT ${names(declared)} FROM ${side} EXCEPT SELECT ${names(declared)} FROM ${other})`;
}

/** SQL condition for rows on these days; consecutive days become one span. */
function within({ spec }: Declared, days: readonly number[]): string {
  const spans: { from: number; to: number }[] = [];
  for (const day of days) {
    const last = spans.at(-1);
    if (last?.to === day) last.to = day + 1;
    else spans.push({ from: day, to: day + 1 });
  }
  const instant = instantExpression(spec);
  return spans
    .map(
      ({ from, to }) =>
        `${instant} >= ${timestampLiteral(startOfDay(from, spec))} AND ${instant} < ${timestampLiteral(startOfDay(to, spec))}`,
    )
    .join(' OR ');
}

async function count(session: DuckDbSession, sql: string): Promise<number> {
  const [row] = await session.rows(sql);
  return Number(row?.['n']);
}

/** Days on which only the daily objects have rows. */
async function daysWithoutRows(session: DuckDbSession, { spec }: Declared): Promise<string[]> {
  const day = `CAST(CAST(${instantExpression(spec)} AS DATE) AS VARCHAR)`;
  const found = await session.rows(
    `SELECT DISTINCT ${day} AS day FROM daily EXCEPT SELECT DISTINCT ${day} FROM monthly ORDER BY day`,
  );
  return found.map((row) => String(row['day']));
}

async function shortMonth(
  session: DuckDbSession,
  { spec }: Declared,
  days: readonly string[],
): Promise<Found> {
  if (days.length === 0) return undefined;
  const rows = await count(
    session,
    `SELECT count(*) AS n FROM daily WHERE ${onDays(instantExpression(spec), days)}`,
  );
  return { kind: 'short-month', rows, days };
}

function onDays(instant: string, days: readonly string[]): string {
  return `CAST(CAST(${instant} AS DATE) AS VARCHAR) IN (${days.map((day) => `'${day}'`).join(', ')})`;
}

function sameKey(sort: readonly string[]): string {
  return sort.map(isSame).join(' AND ');
}

/** Never NULL. */
function isSame(name: string): string {
  return `(monthly_only.${quoteName(name)} IS NOT DISTINCT FROM daily_only.${quoteName(name)})`;
}

async function differing(
  session: DuckDbSession,
  columns: readonly ColumnSpec[],
  sort: readonly string[],
): Promise<Found> {
  const values = columns.filter(({ name }) => !sort.includes(name));
  const joined = `monthly_only JOIN daily_only ON ${sameKey(sort)}`;
  const [counts] = await session.rows(
    `SELECT count(*) AS ".rows", ${values.map((column) => `count_if(NOT ${isSame(column.name)}) AS ${quoteName(column.name)}`).join(', ')} FROM ${joined}`,
  );
  const rows = Number(counts?.['.rows']);
  if (rows === 0) return undefined;
  const different = values.filter(({ name }) => Number(counts?.[name]) > 0);
  const shown = different.flatMap(({ name }) => [
    `monthly_only.${quoteName(name)} AS ${quoteName(`monthly.${name}`)}`,
    `daily_only.${quoteName(name)} AS ${quoteName(`daily.${name}`)}`,
  ]);
  const keys = sort.map((name) => `daily_only.${quoteName(name)} AS ${quoteName(name)}`);
  const [example] = await session.rows(
    `SELECT ${[...keys, ...shown].join(', ')} FROM ${joined} ORDER BY ${sort.map((name) => `daily_only.${quoteName(name)}`).join(', ')} LIMIT 1`,
  );
  return {
    kind: 'rows-differ',
    rows,
    columns: Object.fromEntries(different.map(({ name }) => [name, Number(counts?.[name])])),
    ...(example === undefined ? {} : { example }),
  };
}

interface OneSide {
  readonly side: Side;
  readonly other: Side;
  readonly kind: 'rows-missing' | 'rows-extra';
  /** Days that `short-month` reports already. */
  readonly emptyDays: readonly string[];
}

async function onlyIn(
  session: DuckDbSession,
  { spec }: Declared,
  { side, other, kind, emptyDays }: OneSide,
): Promise<Found> {
  const otherDays = emptyDays.length === 0 ? '' : `WHERE NOT (${onDays('".instant"', emptyDays)})`;
  const alone = `(SELECT * FROM ${side}_only ANTI JOIN ${other}_only ON ${sameKey(spec.sort)}) ${otherDays}`;
  const rows = await count(session, `SELECT count(*) AS n FROM ${alone}`);
  if (rows === 0) return undefined;
  const keys = spec.sort.map(quoteName).join(', ');
  const [example] = await session.rows(`SELECT ${keys} FROM ${alone} ORDER BY ${keys} LIMIT 1`);
  const days = await session.rows(
    `SELECT DISTINCT CAST(CAST(".instant" AS DATE) AS VARCHAR) AS day FROM ${alone} ORDER BY day`,
  );
  return {
    kind,
    rows,
    days: days.map((row) => String(row['day'])),
    ...(example === undefined ? {} : { example }),
  };
}

/** Finds a shift by one interval: most rows differ, but agree after their times are moved by one interval. */
async function shiftOf(
  session: DuckDbSession,
  declared: Declared,
  rows: number,
): Promise<{ ms: number; rows: number } | undefined> {
  const seconds = rowSeconds(declared.spec, declared.series.interval);
  const lost = await count(session, 'SELECT count(*) AS n FROM daily_only');
  if (seconds === undefined || lost * 2 <= rows) return undefined;
  for (const ms of [seconds * 1000, -seconds * 1000]) {
    const shifted = archivedValues(declared).map(({ name, type }) =>
      type === 'time' || type === 'datetime'
        ? `${quoteName(name)} - (${ms}) * INTERVAL 1 MILLISECOND`
        : quoteName(name),
    );
    const agreeing = await count(
      session,
      `SELECT count(*) AS n FROM (SELECT ${names(declared)} FROM daily INTERSECT SELECT ${shifted.join(', ')} FROM monthly)`,
    );
    if (agreeing * 2 > rows) return { ms, rows: agreeing };
  }
  return undefined;
}
