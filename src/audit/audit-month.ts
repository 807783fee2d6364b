/** Compares the monthly object of one month with its daily objects, row by row, and finds missing days and ids. */
import { dayText } from '../model/calendar.js';
import type { Conversion } from '../convert/conversion.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import type { DuckDbSession, Engine } from '../convert/duckdb.js';
import type { Input } from '../convert/load-rows.js';
import { readObjects, removeScratch } from '../convert/read-objects.js';
import { quoteName } from '../convert/sql.js';
import type { CryptodlError } from '../model/errors.js';
import type { ArchiveObject, Series, Settings } from '../model/task.js';
import { archivedColumns, rowSeconds } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { AuditedMonth, AuditFinding } from './audit-finding.js';
import { compareRows, dayExpression } from './compare-rows.js';
import type { Difference } from './compare-rows.js';

export interface MonthObjects {
  readonly spec: DatasetSpec;
  readonly series: Series;
  /** The days of the month that are before today. */
  readonly days: readonly number[];
  /** Those without a daily object between days that have one. */
  readonly holes: ReadonlySet<number>;
  readonly received: readonly ReceivedObject[];
  /** Gets the errors of objects that cannot be read, by key. */
  readonly failed: Map<string, CryptodlError>;
  /** Prefix of the paths of temporary files. */
  readonly scratchPath: string;
}

type Comparison = Pick<AuditedMonth, 'findings' | 'rows' | 'rowsWithoutDay'>;

/** Rows are loaded in their published order, with numbers as doubles. */
export const AUDITED: Settings = {
  format: 'parquet',
  partition: 'month',
  cadence: 'auto',
  numbers: 'double',
  timestamps: 'us',
  asPublished: true,
};

/** About six months of 1m bars. */
export const MEMORY_CSV_BYTES = 32 * 1024 * 1024;
/** The ordinal of the monthly object. The ordinal of a daily object is its day number. */
const MONTHLY = -1;
const ORDINAL = quoteName('.ordinal');
const OF_MONTH = `${ORDINAL} = ${MONTHLY}`;
/** Ids of `trades` have gaps at the exchange itself (github.com/binance/binance-public-data, issues 363 and 458). */
const UNBROKEN_IDS: ReadonlySet<string> = new Set(['aggTrades']);

/** Rejects with errors that do not concern the content of the objects (disk, memory, interruption, bugs). */
export async function compareMonth(engine: Engine, objects: MonthObjects): Promise<Comparison> {
  const { spec, series, received, failed, scratchPath } = objects;
  const conversion: Conversion = {
    spec,
    series,
    received,
    settings: AUDITED,
    csvPath: `${scratchPath}.csv`,
    targetPath: scratchPath,
    memoryCsvBytes: MEMORY_CSV_BYTES,
    metadata: () => ({ cryptodl: '{}' }),
  };
  const session = await engine.session();
  try {
    const ordinalsOf = (inputs: readonly Input[]): number[] =>
      inputs.map(({ received: { object } }) => ordinalOf(object));
    const read = await readObjects(session, conversion, { failed, ordinalsOf });
    if (read === undefined) return { findings: [], rows: 0, rowsWithoutDay: 0 };
    const keys = new Map(read.inputs.map(({ received: { object } }) => [ordinalOf(object), object.key]));
    return await compareObjects(session, objects, keys);
  } finally {
    session.close();
    await removeScratch(conversion);
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
  for (const row of await session.rows(
    `SELECT ${day} AS day, count(*) AS n FROM rows WHERE ${OF_MONTH} GROUP BY day ORDER BY day`,
  ))
    monthly.set(Number(row['day']), Number(row['n']));
  const known = [...monthly.keys()];
  const withoutDay = days.filter((one) => !keys.has(one));
  const lacking = withoutDay.filter(
    (one) => one > (known[0] ?? 0) && one < (known.at(-1) ?? 0) && !monthly.has(one),
  );
  const isShort = rowSeconds(spec, series.interval) !== undefined && lacking.length > 0;
  // Rows of a hole are rows that only the monthly object has; a day before the first daily object proves nothing.
  const uncompared = withoutDay.filter((one) => !holes.has(one));
  const rows = await count(session, `SELECT count(*) AS n FROM rows WHERE NOT ${OF_MONTH}`);
  const found =
    rows === 0 && holes.size === 0
      ? []
      : await compareRows(session, spec, archivedColumns(spec), [
          {
            name: 'monthly',
            rows: `rows WHERE ${OF_MONTH} AND NOT list_contains([${uncompared.join(', ')}], ${day})`,
            all: `rows WHERE ${OF_MONTH}`,
          },
          { name: 'daily', rows: `rows WHERE NOT ${OF_MONTH}`, all: `rows WHERE NOT ${OF_MONTH}` },
        ]);
  const short: Difference[] = isShort ? [{ kind: 'short-month', rows: 0, days: lacking.map(dayText) }] : [];
  return {
    findings: [...[...found, ...short].map((finding) => ({ ...finding, key })), ...ids],
    rows,
    rowsWithoutDay: withoutDay.reduce((sum, one) => sum + (monthly.get(one) ?? 0), 0),
  };
}

async function count(session: DuckDbSession, sql: string): Promise<number> {
  const [row] = await session.rows(sql);
  return Number(row?.['n']);
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
