/** Compares the monthly object of one month with its daily objects, row by row, and finds missing days and ids. */
import type { DuckDb, Engine } from '../../convert/duckdb.js';
import type { SourceObject } from '../../model/task.js';
import { archivedColumns, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { ReadObjects } from '../../convert/read-objects.js';
import { quoteName } from '../../convert/sql.js';
import { compareRows, dayExpression } from './compare-rows.js';
import { withRows, type AuditedObjects } from './audited-objects.js';
import { NOTHING_COMPARED, type AuditFinding, type AuditedMonth } from './findings.js';

export interface Month extends AuditedObjects {
  /** `2024-01` */
  readonly text: string;
  /** The monthly one, then the daily ones. */
  readonly objects: readonly SourceObject[];
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
export async function compareMonth(engine: Engine, month: Month): Promise<Comparison> {
  const duckdb = await engine.connect();
  try {
    const compare = ({ inputs }: ReadObjects): Promise<Comparison> => {
      const keys = inputs.map(({ received: { object } }) => [ordinalOf(object), object.key] as const);
      return compareObjects(duckdb, month, new Map(keys));
    };
    return (await withRows(duckdb, month, compare, ordinalOf)) ?? NOTHING_COMPARED;
  } finally {
    duckdb.close();
  }
}

const ordinalOf = ({ period }: SourceObject): number =>
  period.cadence === 'monthly' ? MONTHLY : period.from;

/** The relation `rows` must hold the rows of all objects. `keys`: their keys by ordinal. */
async function compareObjects(
  duckdb: DuckDb,
  { spec, days, holes }: Month,
  keys: ReadonlyMap<number, string>,
): Promise<Comparison> {
  const ids = await missingIds(duckdb, spec, keys);
  const key = keys.get(MONTHLY);
  if (key === undefined) return { ...NOTHING_COMPARED, findings: ids };
  const day = dayExpression(spec);
  const isOneOf = (some: readonly number[]): string => `list_contains([${some.join(', ')}], ${day})`;
  const withoutDay = days.filter((one) => !keys.has(one));
  const [counted] = await duckdb.rows(
    `SELECT count_if(NOT ${OF_MONTH}) AS daily, count_if(${OF_MONTH} AND ${isOneOf(withoutDay)}) AS without_day FROM rows`,
  );
  const rows = Number(counted?.['daily']);
  // Rows of a hole are rows that only the monthly object has; a day before the first daily object proves nothing.
  const uncompared = withoutDay.filter((one) => !holes.has(one));
  const all = `rows WHERE ${OF_MONTH}`;
  const isComparable = rows > 0 || holes.size > 0;
  const found = isComparable
    ? await compareRows(duckdb, { key, spec }, archivedColumns(spec), [
        { name: 'monthly', rows: `${all} AND NOT ${isOneOf(uncompared)}`, all },
        { name: 'daily', rows: `rows WHERE NOT ${OF_MONTH}` },
      ])
    : [];
  return { findings: [...found, ...ids], rows, rowsWithoutDay: Number(counted?.['without_day']) };
}

/** Gaps in ids within an object, and from one day to the next. */
async function missingIds(
  duckdb: DuckDb,
  spec: DatasetSpec,
  keys: ReadonlyMap<number, string>,
): Promise<AuditFinding[]> {
  if (!UNBROKEN_IDS.has(spec.name)) return [];
  const rows = await duckdb.rows(
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
