/** Checks that compare no rows of the two cadences: ids and missing days. */
import { DAY_MS, dayText } from '../model/calendar.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import type { AuditFinding } from './audit-finding.js';
import { quoteName } from '../convert/sql.js';
import { rowSeconds } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { MONTHLY } from './compare-cadences.js';
import { instantExpression } from '../convert/columns.js';
import type { Conversion } from '../convert/conversion.js';
import { conflictsQuery } from '../convert/statements.js';

type Declared = Pick<Conversion, 'spec' | 'series'>;
type KeyOf = (ordinal: number) => string;

const ORDINAL = quoteName('.ordinal');
const NUMBER = quoteName('.number');

/** Ids of `trades` have gaps at the exchange itself (github.com/binance/binance-public-data, issues 363 and 458). */
const UNBROKEN_IDS: ReadonlySet<string> = new Set(['aggTrades']);

/** The relation `rows` must hold the rows of all objects; column `.ordinal` is the ordinal of the row's object. */
export async function inspectIds(
  session: DuckDbSession,
  { spec }: Declared,
  keyOf: KeyOf,
): Promise<AuditFinding[]> {
  const column = spec.columns.find(({ name }) => name === spec.sort[0]);
  if (column?.type !== 'integer') return [];
  const id = quoteName(column.name);
  const disordered = await session.rows(
    `SELECT ord, count(*) AS n, arg_min(id, number) AS id, arg_min(previous, number) AS previous
     FROM (SELECT ${ORDINAL} AS ord, ${NUMBER} AS number, ${id} AS id, lag(${id}) OVER (PARTITION BY ${ORDINAL} ORDER BY ${NUMBER}) AS previous FROM rows)
     WHERE id < previous GROUP BY ord ORDER BY ord`,
  );
  const findings = disordered.map((row): AuditFinding => {
    const example = { previous: row['previous'], [column.name]: row['id'] };
    return { kind: 'ids-disordered', key: keyOf(Number(row['ord'])), rows: Number(row['n']), example };
  });
  const conflicting = await conflictingIds(session, spec, column.name, keyOf);
  const missing = UNBROKEN_IDS.has(spec.name) ? await missingIds(session, id, keyOf) : [];
  return [...findings, ...conflicting, ...missing];
}

/** Ids with different values within one object. Differences between cadences are found in compare-cadences.ts. */
async function conflictingIds(
  session: DuckDbSession,
  spec: DatasetSpec,
  name: string,
  keyOf: KeyOf,
): Promise<AuditFinding[]> {
  const rows = await session.rows(conflictsQuery({ spec }));
  return rows.map((row) => ({
    kind: 'ids-conflicting',
    key: keyOf(Number(row['ord'])),
    rows: Number(row['ids']),
    example: { [name]: row['id'] },
  }));
}

/** Gaps in ids within an object, and from one day to the next. */
async function missingIds(session: DuckDbSession, id: string, keyOf: KeyOf): Promise<AuditFinding[]> {
  const rows = await session.rows(
    `SELECT ord, sum(next - id - 1) AS n, min(id) AS id, arg_min(next, id) AS next
     FROM (SELECT ord, id, lead(id) OVER w AS next, lead(ord) OVER w AS next_ord
           FROM (SELECT DISTINCT ${ORDINAL} AS ord, ${id} AS id, ${ORDINAL} = ${MONTHLY} AS is_month FROM rows)
           WINDOW w AS (PARTITION BY is_month ORDER BY id))
     WHERE next > id + 1 AND next_ord - ord BETWEEN 0 AND 1 GROUP BY ord ORDER BY ord`,
  );
  return rows.map((row) => {
    const example = { before: row['id'], after: row['next'] };
    return { kind: 'ids-missing', key: keyOf(Number(row['ord'])), rows: Number(row['n']), example };
  });
}

/** Days without rows between the first and the last row of the monthly object, except days with a daily object. */
export async function inspectDays(
  session: DuckDbSession,
  { spec, series }: Declared,
  { days, key }: { readonly days: readonly number[]; readonly key: string },
): Promise<AuditFinding[]> {
  if (rowSeconds(spec, series.interval) === undefined) return [];
  const rows = await session.rows(
    `SELECT DISTINCT (epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS} AS day FROM rows WHERE ${ORDINAL} = ${MONTHLY} ORDER BY day`,
  );
  const there = rows.map((row) => Number(row['day']));
  const known = new Set([...there, ...days]);
  const missing: string[] = [];
  for (let day = there[0] ?? 0; day < (there.at(-1) ?? 0); day += 1)
    if (!known.has(day)) missing.push(dayText(day));
  return missing.length === 0 ? [] : [{ kind: 'short-month', key, rows: 0, days: missing }];
}
