/** Downloads the monthly and daily objects of each month into a spool folder, audits them and deletes them. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { dayOf, dayPeriod, monthOf, monthStart, monthText } from '../model/calendar.js';
import { createEngine } from '../convert/duckdb.js';
import type { Engine } from '../convert/duckdb.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import type { MonthAudit } from './audit-finding.js';
import { mapOrdered } from '../queue/in-order.js';
import { absenceReason, listSeries } from '../plan/series-listing.js';
import type { SeriesListing } from '../plan/series-listing.js';
import type { ArchiveObject, Cadence, PartitionPlan, Series } from '../model/task.js';
import { cadencesOf } from '../source/keys.js';
import { findDataset } from '../source/venue.js';
import { AUDITED, auditMonth } from './audit-month.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import { makeFolder } from '../files/disk.js';
import { downloadContext, downloadObject, releaseBodies } from '../download/download-object.js';
import type { Session } from '../download/session.js';
import type { AuditedSeries } from './select-audit.js';
import { daysOfMonth } from './select-audit.js';

/** An object that could not be downloaded or read. */
export interface AuditFailure {
  readonly series: Series;
  readonly month: string;
  readonly key: string;
  readonly error: CryptodlError;
}

export interface AuditedMonth {
  readonly audit: MonthAudit;
  readonly failures: readonly AuditFailure[];
  /** Key of the monthly object. */
  readonly monthlyKey: string | undefined;
  /** Days with a daily object. */
  readonly days: ReadonlySet<number>;
}

const ENGINE_MEMORY_BYTES = 600e6;
/** One month is compared while the next one is downloaded. */
const MONTHS_AT_ONCE = 2;

/** Yields months in the order of the series, then of time. Rejects with fatal errors, and when the listing is unavailable. */
export async function* auditArchive(
  session: Session,
  audited: readonly AuditedSeries[],
): AsyncGenerator<AuditedMonth> {
  const folder = spoolOf(session);
  await makeFolder(folder);
  const engine = createEngine({
    memoryBytes: ENGINE_MEMORY_BYTES,
    tempFolder: join(folder, 'spill'),
    signal: session.stop.signal,
  });
  try {
    for (const one of audited) yield* auditSeries(session, one, { engine, folder });
  } finally {
    engine.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A separate folder, because a run clears its own spool and an audit takes no lock. */
function spoolOf({ options, runFolder }: Pick<Session, 'options' | 'runFolder'>): string {
  const root = options.tempDir === undefined ? tmpdir() : dirname(runFolder);
  return join(root, `cryptodl-audit-${randomUUID()}`);
}

interface Workspace {
  readonly engine: Engine;
  readonly folder: string;
}

async function* auditSeries(
  session: Session,
  one: AuditedSeries,
  workspace: Workspace,
): AsyncGenerator<AuditedMonth> {
  const months = mapOrdered(await monthsOf(session, one), MONTHS_AT_ONCE, (month) =>
    download(session, one.series, month, workspace.folder),
  );
  for await (const month of months) {
    try {
      yield await auditDownloaded(session, one.series, month, workspace);
    } finally {
      await Promise.all(month.received.map(releaseBodies));
    }
  }
}

interface ListedMonth {
  readonly month: number;
  readonly monthly: ArchiveObject | undefined;
  readonly daily: readonly ArchiveObject[];
  /** Days without a daily object between days that have one. */
  readonly holes: readonly number[];
}

/** The months for which the archive has an object. */
async function monthsOf(
  session: Pick<Session, 'listing' | 'nowMs' | 'venue'>,
  { series, from, to }: AuditedSeries,
): Promise<ListedMonth[]> {
  const spec = findDataset(session.venue, series.market, series.dataset);
  if (spec === undefined) return [];
  const today = dayOf(session.nowMs, session.venue);
  const start = from === undefined ? {} : { from: monthStart(from) };
  const selected = { ...start, to: Math.min(monthStart(to), today), today };
  const listings = new Map<Cadence, SeriesListing>();
  for (const cadence of cadencesOf(spec, series.interval))
    listings.set(cadence, await listSeries(session.listing, session.venue, series, cadence, selected));
  const daily = listings.get('daily');
  const objects = [...listings.values()].flatMap((listing) => [...listing.objects.values()]);
  const first = Math.min(...objects.map(({ period }) => monthOf(period.from)));
  const months: ListedMonth[] = [];
  for (let month = Math.max(first, from ?? 0); month < to; month += 1) {
    const days = daysOfMonth(session, month);
    const isOfMonth = ({ period }: ArchiveObject): boolean =>
      period.from >= days.from && period.from < days.to;
    const listed = {
      month,
      monthly: listings.get('monthly')?.objects.get(days.from),
      daily: [...(daily?.objects.values() ?? [])].filter(isOfMonth),
      holes: daily === undefined ? [] : holesOf(daily, days, { today, span: spec.spans.daily }),
    };
    if (listed.monthly !== undefined || listed.daily.length > 0) months.push(listed);
  }
  return months;
}

function holesOf(
  listing: SeriesListing,
  { from, to }: { readonly from: number; readonly to: number },
  where: Parameters<typeof absenceReason>[2],
): number[] {
  const days = Array.from({ length: to - from }, (_, index) => from + index);
  return days.filter(
    (day) => !listing.objects.has(day) && absenceReason(listing, dayPeriod(day), where) === 'hole',
  );
}

interface DownloadedMonth extends ListedMonth {
  readonly received: readonly ReceivedObject[];
  readonly failed: ReadonlyMap<string, CryptodlError>;
}

async function download(
  session: Session,
  series: Series,
  listed: ListedMonth,
  folder: string,
): Promise<DownloadedMonth> {
  const { monthly, daily } = listed;
  const failed = new Map<string, CryptodlError>();
  const received: ReceivedObject[] = [];
  const plan: PartitionPlan = { series, settings: AUDITED, label: monthText(listed.month), tasks: [] };
  const context = downloadContext(session, folder);
  const arrivals = mapOrdered(
    [...(monthly === undefined ? [] : [monthly]), ...daily],
    session.concurrency.places,
    async (object) => {
      try {
        const arrived = await downloadObject(context, plan, object);
        return 'received' in arrived ? arrived.received : undefined;
      } catch (error) {
        const known = toCryptodlError(error);
        if (known.fatal) throw known;
        failed.set(object.key, known);
        return undefined;
      }
    },
  );
  for await (const arrived of arrivals) if (arrived !== undefined) received.push(arrived);
  return { ...listed, received, failed };
}

async function auditDownloaded(
  session: Pick<Session, 'venue'>,
  series: Series,
  { month, monthly, daily, holes, received, failed }: DownloadedMonth,
  { engine, folder }: Workspace,
): Promise<AuditedMonth> {
  const spec = findDataset(session.venue, series.market, series.dataset);
  if (spec === undefined) throw new CryptodlError('bug', `${series.dataset} is not declared`);
  const result = await auditMonth(engine, {
    spec,
    series,
    month: monthText(month),
    received,
    holes,
    scratchPath: join(folder, randomUUID()),
  });
  const failures = [...failed, ...result.failed].map(([key, error]) => ({
    series,
    month: monthText(month),
    key,
    error,
  }));
  return {
    audit: result.audit,
    failures,
    monthlyKey: monthly?.key,
    days: new Set(daily.map(({ period }) => period.from)),
  };
}
