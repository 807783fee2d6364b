/** Compares the monthly object of one month with its daily objects, row by row, and finds missing days and ids. */
import { DAY_MS, dayText } from '../model/calendar.js';
import { instantExpression } from '../convert/columns.js';
import type { Conversion } from '../convert/conversion.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import type { DuckDbSession, Engine } from '../convert/duckdb.js';
import type { Input } from '../convert/load-rows.js';
import { readObjects, removeScratch } from '../convert/read-objects.js';
import { quoteName } from '../convert/sql.js';
import type { CryptodlError } from '../model/errors.js';
import type { ArchiveObject, Series, Settings } from '../model/task.js';
import type { ColumnSpec } from '../source/facts.js';
import { archivedColumns, rowSeconds } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { AuditedMonth, AuditFinding } from './audit-finding.js';

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
const MEMORY_CSV_BYTES = 32 * 1024 * 1024;
/** The ordinal of the monthly object. The ordinal of a daily object is its day number. */
const MONTHLY = -1;
const ORDINAL = quoteName('.ordinal');
const OF_MONTH = `${ORDINAL} = ${MONTHLY}`;
const DAY = quoteName('.day');
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
      : await compareRows(
          session,
          spec,
          `${OF_MONTH} AND NOT list_contains([${uncompared.join(', ')}], ${day})`,
        );
  const short: Found = isShort ? { kind: 'short-month', rows: 0, days: lacking.map(dayText) } : undefined;
  return {
    findings: [
      ...[...found, short].flatMap((finding) => (finding === undefined ? [] : [{ ...finding, key }])),
      ...ids,
    ],
    rows,
    rowsWithoutDay: withoutDay.reduce((sum, one) => sum + (monthly.get(one) ?? 0), 0),
  };
}

type Found = Omit<AuditFinding, 'key'> | undefined;

/** The number of the day of a row. */
function dayExpression(spec: DatasetSpec): string {
  return `((epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS})`;
}

async function count(session: DuckDbSession, sql: string): Promise<number> {
  const [row] = await session.rows(sql);
  return Number(row?.['n']);
}

/** Compares rows by their values. EXCEPT drops repeated rows, which are not a difference. `monthly`: condition of the compared rows of the monthly object. */
async function compareRows(session: DuckDbSession, spec: DatasetSpec, monthly: string): Promise<Found[]> {
  const columns = archivedColumns(spec).filter(({ type }) => type !== 'symbol');
  const names = columns.map(({ name }) => quoteName(name)).join(', ');
  const only = (side: string, rows: string, others: string): Promise<void> =>
    session.run(
      `CREATE OR REPLACE TEMP TABLE ${side} AS SELECT *, ${dayExpression(spec)} AS ${DAY}
       FROM (SELECT ${names} FROM rows WHERE ${rows} EXCEPT SELECT ${names} FROM rows WHERE ${others})`,
    );
  await only('monthly', monthly, `NOT ${OF_MONTH}`);
  await only('daily', `NOT ${OF_MONTH}`, OF_MONTH);
  return [
    await differing(session, columns, spec.sort),
    await alone(session, spec.sort, { kind: 'rows-missing', side: 'daily', other: 'monthly' }),
    await alone(session, spec.sort, { kind: 'rows-extra', side: 'monthly', other: 'daily' }),
  ];
}

/** Never NULL. */
function isSame(name: string): string {
  return `(monthly.${quoteName(name)} IS NOT DISTINCT FROM daily.${quoteName(name)})`;
}

async function differing(
  session: DuckDbSession,
  columns: readonly ColumnSpec[],
  sort: readonly string[],
): Promise<Found> {
  const values = columns.map(({ name }) => name).filter((name) => !sort.includes(name));
  const joined = `monthly JOIN daily ON ${sort.map(isSame).join(' AND ')}`;
  const counted = values.map((name) => `count_if(NOT ${isSame(name)}) AS ${quoteName(name)}`);
  const [counts = {}] = await session.rows(
    `SELECT count(*) AS ".rows", ${counted.join(', ')} FROM ${joined}`,
  );
  const rows = Number(counts['.rows']);
  if (rows === 0) return undefined;
  const different = values.filter((name) => Number(counts[name]) > 0);
  const keys = sort.map((name) => `daily.${quoteName(name)}`);
  const shown = different.flatMap((name) =>
    ['monthly', 'daily'].map((side) => `${side}.${quoteName(name)} AS ${quoteName(`${side}.${name}`)}`),
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
): Promise<Found> {
  const from = `FROM ${side} ANTI JOIN ${other} ON ${sort.map(isSame).join(' AND ')}`;
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
