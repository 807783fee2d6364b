/** Downloads the monthly and daily objects of each month into a spool folder, audits them and deletes them. */
import { ORDINAL } from '../../convert/statements.js';
import { dayOf, dayPeriod, eachDay, monthOf, monthStart, monthText } from '../../model/calendar.js';
import type { VerbEngine, DuckDb, Engine } from '../../convert/duckdb.js';
import { toCryptodlError, usage } from '../../model/errors.js';
import { mapOrdered } from '../../model/in-order.js';
import { absenceReason, listSeries, type SeriesListing } from '../../plan/series-listing.js';
import { FORMATS } from '../../model/task.js';
import type { Cadence, PartitionPlan, Series, SourceObject } from '../../model/task.js';
import { cadencesOf } from '../../exchange/keys.js';
import { findDataset, isArchived, archivedColumns, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { downloadObject, releaseBodies } from '../../run/objects/download-object.js';
import type { RunSession } from '../../run/session/session.js';
import { AUDITED, withRows, type AuditedObjects } from './audited-objects.js';
import { NOTHING_COMPARED, type AuditedMonth, type AuditFinding } from './findings.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import type { HeldFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange, isRangeGiven } from '../../plan/select/date-range.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { selectSeries } from '../../plan/select/select-series.js';
import type { ReadObjects } from '../../convert/read-objects.js';
import { quoteName } from '../../convert/sql.js';
import { compareRows, dayExpression } from './compare-rows.js';

/** One month is compared while the next one is downloaded. */
const MONTHS_AT_ONCE = 2;

/** Yields months in the order of the series, then of time. Rejects with usage errors and fatal errors, and when the listing is unavailable. */
export async function* auditArchive(
  session: RunSession,
  request: VerbRequest<HeldFlag>,
  engine: VerbEngine,
): AsyncGenerator<AuditedMonth> {
  for (const audited of await selectAudit(session, request)) {
    const months = await monthsOf(session, audited, engine.folder);
    const downloads = mapOrdered(months, MONTHS_AT_ONCE, (month) => download(session, month));
    for await (const month of downloads) {
      try {
        const compared = await compareMonth(engine, month);
        const daily = month.objects.filter(({ period }) => period.cadence === 'daily');
        const days = new Set(daily.map(({ period }) => period.from));
        yield { ...compared, series: audited.series, month: month.text, failed: month.failed, days };
      } finally {
        await Promise.all(month.received.map(releaseBodies));
      }
    }
  }
}

/** The months for which the archive has an object. Nothing is received yet. */
async function monthsOf(
  { listing, nowMs, exchange }: RunSession,
  { series, from, to }: AuditedSeries,
  folder: string,
): Promise<Month[]> {
  const spec = findDataset(exchange, series.market, series.dataset);
  if (spec === undefined) return [];
  const today = dayOf(nowMs, exchange);
  const end = monthOf(to - 1) + 1;
  const start = from === undefined ? {} : { from: monthStart(monthOf(from)) };
  const selected = { ...start, to: Math.min(monthStart(end), today), today };
  const listings = new Map<Cadence, SeriesListing>();
  for (const cadence of cadencesOf(spec, series.interval))
    listings.set(cadence, await listSeries(listing, exchange, series, cadence, selected));
  const objects = [...listings.values()].flatMap((listed) => [...listed.objects.values()]);
  const first = Math.min(...objects.map(({ period }) => monthOf(period.from)));
  const listed = listings.get('daily');
  const isHole = (day: number): boolean =>
    listed?.objects.has(day) === false && absenceReason(listed, dayPeriod(day), spec.spans.daily) === 'hole';
  const months: Month[] = [];
  for (let month = Math.max(first, monthOf(from ?? 0)); month < end; month += 1) {
    const begin = monthStart(month);
    const days = eachDay({ from: begin, to: Math.min(monthStart(month + 1), today) });
    const monthly = listings.get('monthly')?.objects.get(begin);
    const ofMonth = [monthly ?? [], ...days.map((day) => listed?.objects.get(day) ?? [])].flat();
    if (ofMonth.length === 0) continue;
    const about = { spec, series, text: monthText(month), days, holes: new Set(days.filter(isHole)) };
    months.push({ ...about, objects: ofMonth, received: [], failed: new Map(), folder });
  }
  return months;
}

/** The month with its objects. Rejects with fatal errors. */
async function download(session: RunSession, month: Month): Promise<Month> {
  const { series, text, objects, failed, folder } = month;
  const plan: PartitionPlan = { series, settings: AUDITED, label: text, tasks: [] };
  const context = { ...session, runFolder: folder };
  const arrivals = mapOrdered(objects, session.concurrency.places, async (object) => {
    try {
      const arrived = await downloadObject(context, plan, object);
      return 'received' in arrived ? [arrived.received] : [];
    } catch (error) {
      const known = toCryptodlError(error);
      if (known.fatal) throw known;
      failed.set(object.key, known);
      return [];
    }
  });
  const received: ReceivedObject[] = [];
  for await (const arrived of arrivals) received.push(...arrived);
  return { ...month, received };
}

interface AuditedSeries {
  readonly series: Series;
  /** Days `[from, to)`, whose months are audited. Undefined: from the first object of the series. */
  readonly from: number | undefined;
  readonly to: number;
}

/** Throws usage errors, also for a lake without matching series. */
async function selectAudit(session: RunSession, request: VerbRequest<HeldFlag>): Promise<AuditedSeries[]> {
  if (session.options.symbols === undefined) return heldMonths(session, request);
  // By default, the last complete month.
  const options = isRangeGiven(session.options) ? session.options : { ...session.options, months: 1 };
  const { requests } = await selectSeries({ ...session, options }, request.resolved, 'vision');
  return requests.map(({ series, ranges }) => ({
    series,
    from: ranges[0]?.from,
    to: ranges.at(-1)?.to ?? 0,
  }));
}

async function heldMonths(session: RunSession, request: VerbRequest<HeldFlag>): Promise<AuditedSeries[]> {
  const { options, exchange, nowMs } = session;
  const range = givenRange(options, nowMs, exchange);
  const { root, held } = await readVerbLake(request);
  const audited: AuditedSeries[] = [];
  for (const series of await selectGiven(held, request)) {
    const spec = findDataset(exchange, series.market, series.dataset);
    if (spec === undefined || !isArchived(spec)) continue;
    const manifest = await readHeld(root, exchange, series);
    const spans = FORMATS.flatMap((format) => manifest[format].spans());
    const first = Math.max(Math.min(...spans.map((span) => span.from)), range?.from ?? 0);
    const end = Math.min(Math.max(...spans.map((span) => span.to)), range?.to ?? Infinity);
    if (first < end) audited.push({ series, from: first, to: end });
  }
  if (audited.length > 0) return audited;
  throw usage(
    `${options.out} holds no series of the archive in the range`,
    "name symbols: --symbols BTCUSDT,ETHUSDT or --symbols '*USDT'",
  );
}

// Compares the monthly object of one month with its daily objects, row by row, and finds missing days and ids.

interface Month extends AuditedObjects {
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
const OF_MONTH = `${ORDINAL} = ${MONTHLY}`;
/** Ids of `trades` have gaps at the exchange itself (github.com/binance/binance-public-data, issues 363 and 458). */
const UNBROKEN_IDS: ReadonlySet<string> = new Set(['aggTrades']);

/** Rejects with errors that do not concern the content of the objects (disk, memory, interruption, bugs). */
async function compareMonth(engine: Engine, month: Month): Promise<Comparison> {
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
