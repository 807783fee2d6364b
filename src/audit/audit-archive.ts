/** Downloads the monthly and daily objects of each month into a spool folder, audits them and deletes them. */
import { dayOf, dayPeriod, monthOf, monthStart, monthText } from '../model/calendar.js';
import type { VerbEngine } from '../convert/duckdb.js';
import { toCryptodlError } from '../model/errors.js';
import type { CryptodlError } from '../model/errors.js';
import type { AuditedMonth } from './audit-finding.js';
import { mapOrdered } from '../queue/in-order.js';
import { absenceReason, listSeries } from '../plan/series-listing.js';
import type { SeriesListing } from '../plan/series-listing.js';
import type { ArchiveObject, Cadence, PartitionPlan } from '../model/task.js';
import { cadencesOf } from '../source/keys.js';
import { findDataset } from '../source/venue.js';
import { compareMonth } from './audit-month.js';
import type { MonthObjects } from './audit-month.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import { downloadObject, releaseBodies } from '../download/download-object.js';
import type { Session } from '../download/session.js';
import { AUDITED } from './read-rows.js';
import type { AuditedSeries } from './select-audit.js';

/** One month is compared while the next one is downloaded. */
const MONTHS_AT_ONCE = 2;

/** Yields months in the order of the series, then of time. Rejects with fatal errors, and when the listing is unavailable. */
export async function* auditArchive(
  session: Session,
  audited: readonly AuditedSeries[],
  engine: VerbEngine,
): AsyncGenerator<AuditedMonth> {
  for (const one of audited) {
    const downloads = mapOrdered(await monthsOf(session, one), MONTHS_AT_ONCE, (month) =>
      download(session, month, engine.folder),
    );
    for await (const { month, objects } of downloads) {
      try {
        const compared = await compareMonth(engine, objects);
        const days = new Set(month.daily.map(({ period }) => period.from));
        yield { series: one.series, month: month.text, failed: objects.failed, days, ...compared };
      } finally {
        await Promise.all(objects.received.map(releaseBodies));
      }
    }
  }
}

interface ListedMonth extends Pick<MonthObjects, 'days' | 'holes' | 'series' | 'spec'> {
  /** `2024-01` */
  readonly text: string;
  readonly monthly: ArchiveObject | undefined;
  readonly daily: readonly ArchiveObject[];
}

/** The months for which the archive has an object. */
async function monthsOf(
  { listing, nowMs, venue }: Pick<Session, 'listing' | 'nowMs' | 'venue'>,
  { series, from, to }: AuditedSeries,
): Promise<ListedMonth[]> {
  const spec = findDataset(venue, series.market, series.dataset);
  if (spec === undefined) return [];
  const today = dayOf(nowMs, venue);
  const start = from === undefined ? {} : { from: monthStart(from) };
  const selected = { ...start, to: Math.min(monthStart(to), today), today };
  const listings = new Map<Cadence, SeriesListing>();
  for (const cadence of cadencesOf(spec, series.interval))
    listings.set(cadence, await listSeries(listing, venue, series, cadence, selected));
  const objects = [...listings.values()].flatMap((listed) => [...listed.objects.values()]);
  const first = Math.min(...objects.map(({ period }) => monthOf(period.from)));
  const listed = listings.get('daily');
  const isHole = (day: number): boolean =>
    listed?.objects.has(day) === false && absenceReason(listed, dayPeriod(day), spec.spans.daily) === 'hole';
  const months: ListedMonth[] = [];
  for (let month = Math.max(first, from ?? 0); month < to; month += 1) {
    const begin = monthStart(month);
    const length = Math.min(monthStart(month + 1), today) - begin;
    const days = Array.from({ length }, (_, index) => begin + index);
    const monthly = listings.get('monthly')?.objects.get(begin);
    const daily = days.flatMap((day) => listed?.objects.get(day) ?? []);
    if (monthly === undefined && daily.length === 0) continue;
    const holes = new Set(days.filter(isHole));
    months.push({ spec, series, text: monthText(month), days, holes, monthly, daily });
  }
  return months;
}

/** The month with its objects. Rejects with fatal errors. */
async function download(
  session: Session,
  month: ListedMonth,
  folder: string,
): Promise<{ readonly month: ListedMonth; readonly objects: MonthObjects }> {
  const { series, text, monthly, daily } = month;
  const failed = new Map<string, CryptodlError>();
  const plan: PartitionPlan = { series, settings: AUDITED, label: text, tasks: [] };
  const context = { ...session, runFolder: folder };
  const arrivals = mapOrdered(
    [...(monthly === undefined ? [] : [monthly]), ...daily],
    session.concurrency.places,
    async (object) => {
      try {
        const arrived = await downloadObject(context, plan, object);
        return 'received' in arrived ? [arrived.received] : [];
      } catch (error) {
        const known = toCryptodlError(error);
        if (known.fatal) throw known;
        failed.set(object.key, known);
        return [];
      }
    },
  );
  const received: ReceivedObject[] = [];
  for await (const arrived of arrivals) received.push(...arrived);
  return { month, objects: { ...month, received, failed, folder } };
}
