/** Checks that compare no rows of the two cadences: ids, constant columns, missing days, and the meaning of labels. */
import { DAY_MS, dayText, startOfDay } from '../model/calendar.js';
import type { Row, DuckDbSession } from '../convert/duckdb.js';
import type { AuditFinding } from './audit-finding.js';
import { quoteName } from '../convert/sql.js';
import type { ColumnSpec } from '../source/facts.js';
import { archivedColumns, rowSeconds } from '../source/venue.js';
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

/** With fewer instants, a constant column is no evidence of a fault. */
const LEAST_INSTANTS = 24;

/**
 * Reports columns that vary on most days but are constant on one day, and objects in which no column varies. If the rows have
 * levels, a column counts as constant if it is constant within each level.
 */
export async function inspectColumns(
  session: DuckDbSession,
  declared: Declared,
  keyOf: KeyOf,
): Promise<AuditFinding[]> {
  const { spec } = declared;
  const values = archivedColumns(spec).filter(
    ({ name, type }) => (type === 'number' || type === 'integer') && !spec.sort.includes(name),
  );
  if (values.length === 0) return [];
  const objects = (await session.rows(variationQuery(declared, values))).map((row) => objectOf(row, values));
  const days = objects.filter(({ ordinal }) => ordinal !== MONTHLY);
  const usual = values.filter(
    ({ name }) => days.filter(({ varying }) => varying.has(name)).length * 2 > days.length,
  );
  return objects.flatMap(({ ordinal, rows, varying, constant }): AuditFinding[] => {
    const isFrozen = varying.size === 0 && values.filter(isConstantNumber(constant)).length > 1;
    const unusual = (isFrozen ? values : ordinal === MONTHLY ? [] : usual).filter(({ name }) =>
      constant.has(name),
    );
    if (unusual.length === 0) return [];
    const columns = Object.fromEntries(unusual.map(({ name }) => [name, rows]));
    const day = ordinal === MONTHLY ? {} : { days: [dayText(ordinal)] };
    return [{ kind: 'columns-constant', key: keyOf(ordinal), rows, columns, ...day }];
  });
}

function isConstantNumber(constant: ReadonlySet<string>): (column: ColumnSpec) => boolean {
  return ({ name, type }) => type === 'number' && constant.has(name);
}

interface ColumnVariation {
  readonly ordinal: number;
  readonly rows: number;
  readonly varying: ReadonlySet<string>;
  readonly constant: ReadonlySet<string>;
}

function variationQuery({ spec }: Declared, values: readonly ColumnSpec[]): string {
  const times = new Set(['time', 'datetime', 'date', 'hour']);
  const levels = spec.sort.filter((name) => {
    const type = spec.columns.find((column) => column.name === name)?.type ?? 'time';
    return !times.has(type) && type !== 'integer';
  });
  const of = (act: (name: string) => string): string =>
    values.map(({ name }) => act(quoteName(name))).join(', ');
  const groups = [ORDINAL, ...levels.map(quoteName)].join(', ');
  return `SELECT ${ORDINAL} AS ".ord", sum(".n") AS ".n", ${of((name) => `bool_or(${name}) AS ${name}`)}
    FROM (SELECT ${groups}, count(*) AS ".n", count(DISTINCT ${instantExpression(spec)}) AS ".instants",
            ${of((name) => `CASE WHEN count(${name}) > 0 THEN min(${name}) <> max(${name}) END AS ${name}`)}
          FROM rows GROUP BY ${groups})
    GROUP BY ${ORDINAL} HAVING max(".instants") >= ${LEAST_INSTANTS} ORDER BY ${ORDINAL}`;
}

function objectOf(row: Row, values: readonly ColumnSpec[]): ColumnVariation {
  const namesWith = (varying: boolean): Set<string> =>
    new Set(values.flatMap(({ name }) => (row[name] === varying ? [name] : [])));
  return {
    ordinal: Number(row['.ord']),
    rows: Number(row['.n']),
    varying: namesWith(true),
    constant: namesWith(false),
  };
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

/** Whether the times of a day's rows are the starts or the ends of their intervals. */
type Labels = 'starts' | 'ends';

export interface DayLabels {
  readonly day: number;
  readonly labels: Labels;
}

/** Reports days whose times mean another end of the interval than on the previous day. Days with an unknown meaning are left out.
 * `before`: the last day with a known meaning in an earlier month. */
export async function inspectLabels(
  session: DuckDbSession,
  { spec, series }: Declared,
  { keyOf, before }: { readonly keyOf: KeyOf; readonly before: DayLabels | undefined },
): Promise<{ findings: AuditFinding[]; last: DayLabels | undefined }> {
  const seconds = rowSeconds(spec, series.interval);
  if (seconds === undefined || seconds >= 86_400) return { findings: [], last: before };
  const rows = await session.rows(
    `SELECT ${ORDINAL} AS ord, count(*) AS n, epoch_ms(min(${instantExpression(spec)})) AS first, epoch_ms(max(${instantExpression(spec)})) AS last
     FROM rows WHERE ${ORDINAL} <> ${MONTHLY} GROUP BY ord ORDER BY ord`,
  );
  const findings: AuditFinding[] = [];
  let last = before;
  for (const row of rows) {
    const day = Number(row['ord']);
    const labels = labelsOf(row, startOfDay(day, spec), seconds * 1000);
    if (labels === undefined) continue;
    if (last !== undefined && last.labels !== labels) {
      findings.push({
        kind: 'labels-shift',
        key: keyOf(day),
        rows: Number(row['n']),
        days: [dayText(day)],
        shiftMs: labels === 'starts' ? -seconds * 1000 : seconds * 1000,
        example: { before: last.labels, after: labels },
      });
    }
    last = { day, labels };
  }
  return { findings, last };
}

/** Undefined if the first and the last row of the day do not show the meaning of the labels. */
function labelsOf(row: Row, startMs: number, stepMs: number): Labels | undefined {
  const startsAt = Number(row['first']) - startMs;
  const endsAt = Number(row['last']) - startMs;
  if (startsAt < stepMs / 2 && endsAt < DAY_MS - stepMs / 2) return 'starts';
  return startsAt >= stepMs / 2 && endsAt >= DAY_MS - stepMs / 2 ? 'ends' : undefined;
}
