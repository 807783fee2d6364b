/** Compares the monthly object of one month with its daily objects, row by row, and finds missing days and ids. */
import type { DuckDbSession, Engine } from '../convert/duckdb.js';
import { quoteName } from '../convert/sql.js';
import { dayText } from '../model/calendar.js';
import type { ArchiveObject } from '../model/task.js';
import { archivedColumns, rowSeconds } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { AuditedMonth, AuditFinding } from './audit-finding.js';
import { compareRows, dayExpression } from './compare-rows.js';
import { withRows } from './read-rows.js';
import type { AuditedObjects } from './read-rows.js';

export interface MonthObjects extends AuditedObjects {
  /** The days of the month that are before today. */
  readonly days: readonly number[];
  /** Those without a daily object between days that have one. */
  readonly holes: ReadonlySet<number>;
}

type Comparison = Pick<AuditedMonth, 'findings' | 'rows' | 'rowsWithoutDay'>;

/** The ordinal of the monthly object. The ordinal of a daily object is its day number. */
const MONTHLY = -1;
const ORDINAL = quoteName('.ordinal');
const OF_MONTH = `${ORDINAL} = ${MONTHLY}`;
/** Ids of `trades` have gaps at the exchange itself (github.com/binance/binance-public-data, issues 363 and 458). */
const UNBROKEN_IDS: ReadonlySet<string> = new Set(['aggTrades']);

/** Rejects with errors that do not concern the content of the objects (disk, memory, interruption, bugs). */
export async function compareMonth(engine: Engine, objects: MonthObjects): Promise<Comparison> {
  const session = await engine.session();
  try {
    const compared = await withRows(session, objects, ordinalOf, ({ inputs }) => {
      const keys = inputs.map(({ received: { object } }) => [ordinalOf(object), object.key] as const);
      return compareObjects(session, objects, new Map(keys));
    });
    return compared ?? { findings: [], rows: 0, rowsWithoutDay: 0 };
  } finally {
    session.close();
  }
}

function ordinalOf({ period }: ArchiveObject): number {
  return period.cadence === 'monthly' ? MONTHLY : period.from;
}

/** The relation `rows` must hold the rows of all objects. `keys`: their keys by ordinal. */
async function compareObjects(
  session: DuckDbSession,
  { spec, series, days, holes }: MonthObjects,
  keys: ReadonlyMap<number, string>,
): Promise<Comparison> {
  const ids = await missingIds(session, spec, keys);
  const key = keys.get(MONTHLY);
  if (key === undefined) return { findings: ids, rows: 0, rowsWithoutDay: 0 };
  const day = dayExpression(spec);
  const monthly = new Map<number, number>();
  let rows = 0;
  for (const { is_month: isOfMonth, day: of, n } of await session.rows(
    `SELECT ${OF_MONTH} AS is_month, ${day} AS day, count(*) AS n FROM rows GROUP BY ALL ORDER BY ALL`,
  ))
    if (isOfMonth === true) monthly.set(Number(of), Number(n));
    else rows += Number(n);
  const known = [...monthly.keys()];
  const withoutDay = days.filter((one) => !keys.has(one));
  const isBetween = (one: number): boolean => one > (known[0] ?? 0) && one < (known.at(-1) ?? 0);
  const lacking = withoutDay.filter((one) => isBetween(one) && !monthly.has(one));
  const isShort = rowSeconds(spec, series.interval) !== undefined && lacking.length > 0;
  const short: AuditFinding[] = isShort
    ? [{ kind: 'short-month', key, rows: 0, days: lacking.map(dayText) }]
    : [];
  // Rows of a hole are rows that only the monthly object has; a day before the first daily object proves nothing.
  const uncompared = withoutDay.filter((one) => !holes.has(one));
  const daily = `rows WHERE NOT ${OF_MONTH}`;
  const all = `rows WHERE ${OF_MONTH}`;
  const ofMonth = `${all} AND NOT list_contains([${uncompared.join(', ')}], ${day})`;
  const sides = [
    { name: 'monthly', rows: ofMonth, all },
    { name: 'daily', rows: daily, all: daily },
  ] as const;
  const isComparable = rows > 0 || holes.size > 0;
  const comparison = { key, spec, columns: archivedColumns(spec), sides };
  const found = isComparable ? await compareRows(session, comparison) : [];
  return {
    findings: [...found, ...short, ...ids],
    rows,
    rowsWithoutDay: withoutDay.reduce((sum, one) => sum + (monthly.get(one) ?? 0), 0),
  };
}

/** Gaps in ids within an object, and from one day to the next. */
async function missingIds(
  session: DuckDbSession,
  spec: DatasetSpec,
  keys: ReadonlyMap<number, string>,
): Promise<AuditFinding[]> {
  if (!UNBROKEN_IDS.has(spec.name)) return [];
  const rows = await session.rows(
    `SELECT ord, sum(next - id - 1) AS n, min(id) AS id, arg_min(next, id) AS next
     FROM (SELECT ord, id, lead(id) OVER w AS next, lead(ord) OVER w AS next_ord
           FROM (SELECT DISTINCT ${ORDINAL} AS ord, ${quoteName(spec.sort[0] ?? '')} AS id, ${OF_MONTH} AS is_month FROM rows)
           WINDOW w AS (PARTITION BY is_month ORDER BY id))
     WHERE next > id + 1 AND next_ord - ord BETWEEN 0 AND 1 GROUP BY ord ORDER BY ord`,
  );
  return rows.map((row) => {
    const example = { before: row['id'], after: row['next'] };
    return { kind: 'ids-missing', key: keys.get(Number(row['ord'])) ?? '', rows: Number(row['n']), example };
  });
}
