/** `audit --against rest`: compares the bars that the lake holds with those that REST has now, in all or a sample of the held days and months. */
import { createHash } from 'node:crypto';
import { openCatalogue, type Catalogue, type HeldSeries } from '../../lake/catalogue/catalogue.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { DuckDb, VerbEngine } from '../../convert/duckdb.js';
import { quoteName } from '../../convert/sql.js';
import { RestDownloads } from '../../run/objects/downloads.js';
import type { RunSession } from '../../run/session/session.js';
import { completeDays } from '../../lake/catalogue/lake-file.js';
import { grouped } from '../../model/by-name.js';
import { periodAt, periodText } from '../../model/calendar.js';
import { CryptodlError, toCryptodlError, usage } from '../../model/errors.js';
import { seriesName, type Period } from '../../model/task.js';
import type { Sample } from '../../plan/options/lake-flags.js';
import type { HeldFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { mapOrdered } from '../../model/in-order.js';
import { givenRange } from '../../plan/select/date-range.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { restOffer } from '../../plan/select/rest-offer.js';
import type { ColumnSpec } from '../../exchange/facts.js';
import { restKey } from '../../exchange/keys.js';
import { archivedColumns, isArchived, rowSeconds, type DatasetSpec } from '../../exchange/exchange-spec.js';
import { compareRows, dayExpression } from './compare-rows.js';
import { withRows } from './audited-objects.js';
import { NOTHING_COMPARED, type AuditedMonth } from './findings.js';

/** The limits of REST pace the requests; more at once would only take memory. */
const PERIODS_AT_ONCE = 4;
/** Shorter bars are compared by day, others by month: each takes REST one page or a few. */
const DAY_BELOW_SECONDS = 3600;

/** A day or a month of a series, with its held days. */
interface HeldPeriod {
  readonly held: HeldSeries;
  readonly spec: DatasetSpec;
  readonly period: Period;
  readonly days: readonly number[];
}

/** Yields periods in the order of the series, then of time. Rejects with usage errors and fatal errors. */
export async function* auditRest(
  session: RunSession,
  request: VerbRequest<HeldFlag>,
  { engine, sample }: { readonly engine: VerbEngine; readonly sample: Sample | undefined },
): AsyncGenerator<AuditedMonth> {
  const { paths, exchange, stop, options } = session;
  const { held } = await readVerbLake(request);
  const selected = (await selectGiven(held, request)).filter((series) => series.interval !== undefined);
  const catalogue = openCatalogue(paths.root, exchange, stop.signal);
  let compared = 0;
  for await (const heldSeries of catalogue.series(selected)) {
    const periods = heldPeriods(session, heldSeries);
    if (periods === undefined) continue;
    compared += 1;
    if (heldSeries.fault !== undefined) {
      const failed = new Map([[seriesName(heldSeries.series), new CryptodlError('disk', heldSeries.fault)]]);
      yield { ...NOTHING_COMPARED, series: heldSeries.series, month: '', failed };
    }
    yield* auditSeries(session, catalogue, drawn(periods, sample), engine);
  }
  if (compared === 0)
    throw usage(
      `${options.out} holds no bars that match the flags and that REST has`,
      'REST has klines, index, mark and premium klines of up to a day',
    );
}

/** The held periods in the range that are over and that REST has; undefined for a series that REST does not have. */
function heldPeriods({ exchange, nowMs, options }: RunSession, held: HeldSeries): HeldPeriod[] | undefined {
  const { series, spec, files } = held;
  const offer = restOffer(series, { exchange, nowMs, mode: 'fill', includeToday: false });
  const seconds = spec === undefined ? undefined : rowSeconds(spec, series.interval);
  if (offer === undefined || spec === undefined || !isArchived(spec) || seconds === undefined)
    return undefined;
  const range = givenRange(options, nowMs, exchange);
  const from = Math.max(offer.from, range?.from ?? 0);
  const to = Math.min(offer.to, offer.settledTo, range?.to ?? Infinity);
  const cadence = seconds < DAY_BELOW_SECONDS ? 'daily' : 'monthly';
  const asked = files.flatMap(completeDays).filter((day) => day >= from && day < to);
  return [...grouped(asked, (day) => periodAt(cadence, day).from).values()].map((days) => {
    const period = { cadence, from: days[0] ?? 0, to: (days.at(-1) ?? 0) + 1 } as const;
    return { held, spec, days, period };
  });
}

/** The periods of the sample in order of time: those with the lowest digests, so that the draw of a series does not depend on other series. */
function drawn(periods: readonly HeldPeriod[], sample: Sample | undefined): readonly HeldPeriod[] {
  if (sample === undefined) return periods;
  const rankOf = ({ held: { series }, period }: HeldPeriod): string =>
    createHash('sha256')
      .update(JSON.stringify([sample.seed, seriesName(series), periodText(period)]))
      .digest('hex');
  const ranks = periods.map(rankOf);
  const highest = ranks.toSorted()[sample.count - 1];
  return periods.filter((_, at) => highest === undefined || (ranks[at] ?? '') <= highest);
}

/** `none`: REST answered that it has no rows. `refused`: REST does not have the symbol, or not any more. */
type Answer = ReceivedObject | CryptodlError | 'none' | 'refused';

async function* auditSeries(
  session: RunSession,
  catalogue: Catalogue,
  periods: readonly HeldPeriod[],
  engine: VerbEngine,
): AsyncGenerator<AuditedMonth> {
  const downloads = new RestDownloads(session);
  const answers = mapOrdered(
    periods,
    PERIODS_AT_ONCE,
    async (one) => [one, await ask(downloads, one)] as const,
  );
  for await (const [one, answer] of answers) {
    const { series } = one.held;
    if (answer === 'refused') {
      session.observer.warn(`${seriesName(series)} is not compared: REST does not have the symbol`);
      return;
    }
    const failed = new Map<string, CryptodlError>();
    let result: Pick<AuditedMonth, 'findings' | 'rows'> = NOTHING_COMPARED;
    const duckdb = await engine.connect();
    try {
      if (answer instanceof CryptodlError) throw answer;
      result = await comparePeriod({ duckdb, catalogue, folder: engine.folder }, one, answer, failed);
    } catch (error) {
      const known = toCryptodlError(error);
      if (known.fatal && known.code !== 'disk') throw known;
      failed.set(restKey(series, one.period), known);
    } finally {
      duckdb.close();
    }
    yield { ...NOTHING_COMPARED, ...result, series, month: periodText(one.period), failed };
  }
}

async function ask(downloads: RestDownloads, { held: { series }, period }: HeldPeriod): Promise<Answer> {
  const { from, to } = period;
  const rest = { from, to, reasonIfEmpty: 'hole' } as const;
  try {
    const got = await downloads.download(series, { key: restKey(series, period), period, rest }, rest);
    if ('received' in got) return got.received;
    return got.instead.isRestEmpty === true ? 'none' : 'refused';
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.fatal) throw known;
    return known.code === 'symbol-unknown' ? 'refused' : known;
  }
}

/** Rejects with `UnreadableFile` for a damaged file of the lake. */
async function comparePeriod(
  { duckdb, catalogue, folder }: { duckdb: DuckDb; catalogue: Catalogue; folder: string },
  { held, spec, period, days }: HeldPeriod,
  answer: ReceivedObject | 'none',
  failed: Map<string, CryptodlError>,
): Promise<Pick<AuditedMonth, 'findings' | 'rows'>> {
  const relation = await catalogue.relation([held], period);
  if (relation === undefined) return NOTHING_COMPARED;
  // Comparing a time with and without a zone depends on it.
  await duckdb.run("SET TimeZone = 'UTC'");
  const columns = archivedColumns(spec).filter(({ nullable }) => !nullable);
  const values = columns.map(comparedValue).join(', ');
  const ofDays = `list_contains([${days.join(', ')}], ${dayExpression(spec)})`;
  const select = (rows: string): string => `SELECT * FROM (SELECT ${values} FROM ${rows}) WHERE ${ofDays}`;
  await duckdb.run(`CREATE TEMP TABLE held AS ${select(`(${relation.sql})`)}`);
  const compare = async (answered: string): Promise<Pick<AuditedMonth, 'findings' | 'rows'>> => {
    await duckdb.run(`CREATE TEMP TABLE answered AS ${answered}`);
    const findings = await compareRows(duckdb, { key: restKey(held.series, period), spec }, columns, [
      { name: 'lake', rows: 'held' },
      { name: 'rest', rows: 'answered' },
    ]);
    const [counted] = await duckdb.rows('SELECT count(*) AS n FROM held');
    return { findings, rows: Number(counted?.['n']) };
  };
  if (answer === 'none') return compare('FROM held LIMIT 0');
  const objects = { spec, series: held.series, received: [answer], folder, failed };
  return (await withRows(duckdb, objects, () => compare(select('rows')))) ?? NOTHING_COMPARED;
}

/** Files with other settings have numbers as text, or times with a zone. */
function comparedValue({ name, type }: ColumnSpec): string {
  const kind = type === 'time' ? 'TIMESTAMP' : type === 'number' ? 'DOUBLE' : 'BIGINT';
  return `CAST(${quoteName(name)} AS ${kind}) AS ${quoteName(name)}`;
}
