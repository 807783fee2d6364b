/** Downloads the monthly and daily objects of each month into a spool folder, audits them and deletes them. */
import { dayOf, dayPeriod, eachDay, monthOf, monthStart, monthText } from '../../model/calendar.js';
import type { VerbEngine } from '../../convert/duckdb.js';
import { toCryptodlError } from '../../model/errors.js';
import { mapOrdered } from '../../model/in-order.js';
import { absenceReason, listSeries, type SeriesListing } from '../../plan/series-listing.js';
import type { Cadence, PartitionPlan } from '../../model/task.js';
import { cadencesOf } from '../../exchange/keys.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { downloadObject, releaseBodies } from '../../run/objects/download-object.js';
import type { RunSession } from '../../run/session/session.js';
import { AUDITED } from './audited-objects.js';
import type { AuditedMonth } from './findings.js';
import { compareMonth, type Month } from './compare-month.js';
import type { AuditedSeries } from './select-audit.js';

/** One month is compared while the next one is downloaded. */
const MONTHS_AT_ONCE = 2;

/** Yields months in the order of the series, then of time. Rejects with fatal errors, and when the listing is unavailable. */
export async function* auditArchive(
  session: RunSession,
  audited: readonly AuditedSeries[],
  engine: VerbEngine,
): AsyncGenerator<AuditedMonth> {
  for (const one of audited) {
    const months = await monthsOf(session, one, engine.folder);
    const downloads = mapOrdered(months, MONTHS_AT_ONCE, (month) => download(session, month));
    for await (const month of downloads) {
      try {
        const compared = await compareMonth(engine, month);
        const daily = month.objects.filter(({ period }) => period.cadence === 'daily');
        const days = new Set(daily.map(({ period }) => period.from));
        yield { ...compared, series: one.series, month: month.text, failed: month.failed, days };
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
