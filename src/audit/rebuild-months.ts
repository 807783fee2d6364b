/** `audit --prefer daily`: selects the months of the lake whose monthly object is unreadable or worse than the daily objects. */
import { join } from 'node:path';
import { monthOf, parsePeriod } from '../model/calendar.js';
import { seriesFolder } from '../lake/layout.js';
import { isFromRest } from '../lake/held-objects.js';
import { readManifest } from '../lake/manifest.js';
import type { SeriesRequest } from '../plan/series-request.js';
import type { Period, Settings } from '../model/task.js';
import { FORMATS, seriesName } from '../model/task.js';
import { countText } from '../model/units.js';
import type { AuditedMonth } from './audit-archive.js';
import { isBroken } from '../download/months-from-days.js';
import type { Session } from '../download/session.js';
import type { RunSelection } from '../select/selection.js';

export interface Rebuilds {
  readonly requests: readonly SeriesRequest[];
  /** One line for each month that is not rebuilt, with the reason. */
  readonly notes: readonly string[];
  /** True when the lake holds the month only from daily objects after the requests are done. */
  readonly isFromDays: boolean;
}

/** Requests that rebuild the month from daily objects, one for each format of the lake. */
export async function rebuildsOf(
  { paths, venue }: Pick<Session, 'paths' | 'venue'>,
  month: AuditedMonth,
): Promise<Rebuilds> {
  const { series, month: text, isMonthlyWorse } = month.audit;
  const period = parsePeriod('monthly', text);
  const isUnreadable = month.failures.some(({ key, error }) => key === month.monthlyKey && isBroken(error));
  if ((!isMonthlyWorse && !isUnreadable) || period === undefined) return NONE;
  const manifest = await readManifest(await paths.folder(seriesFolder(venue.name, series)), venue.archive);
  const requests: SeriesRequest[] = [];
  const notes: string[] = [];
  let isFromDays = false;
  for (const format of FORMATS) {
    const held = manifest[format];
    const line = held.ofMonth(monthOf(period.from));
    const holdsDays = daysOf(period).some((day) => held.hasDay(day));
    isFromDays ||= holdsDays;
    // An unreadable monthly object was readable when the lake took it, so the held rows stay.
    const settings = isUnreadable
      ? line === undefined && !holdsDays
        ? held.last()?.settings
        : undefined
      : line?.settings;
    if (settings === undefined || (line !== undefined && isFromRest(line))) continue;
    const why = isUnreadable ? reasonAgainstDays(month, settings) : reasonToKeep(month, settings);
    if (why === undefined) requests.push(requestOf(month, period, settings));
    else notes.push(`${seriesName(series)} ${text} is not rebuilt: ${why}`);
  }
  return { requests, notes, isFromDays: notes.length === 0 && (isFromDays || requests.length > 0) };
}

const NONE: Rebuilds = { requests: [], notes: [], isFromDays: false };

function reasonToKeep(month: AuditedMonth, settings: Settings): string | undefined {
  if (settings.format === 'zip') return 'the lake holds it as zip';
  if (month.audit.rowsWithoutDay > 0) return 'the archive lacks the daily objects of some days';
  return reasonAgainstDays(month, settings);
}

function reasonAgainstDays(
  { failures, monthlyKey, days }: AuditedMonth,
  settings: Settings,
): string | undefined {
  if (settings.cadence === 'monthly') return 'the series was downloaded with --cadence monthly';
  if (days.size === 0) return 'the archive has no daily objects of this month';
  return failures.some(({ key }) => key !== monthlyKey) ? 'one of its days could not be read' : undefined;
}

function daysOf({ from, to }: Period): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

function requestOf({ audit, days }: AuditedMonth, period: Period, settings: Settings): SeriesRequest {
  const { from, to } = period;
  return {
    series: audit.series,
    settings,
    cadences: ['daily'],
    ranges: [{ from, to }],
    exact: true,
    rewrites: 'always',
    emptyDays: daysOf(period).filter((day) => !days.has(day)),
  };
}

function joined(a: SeriesRequest, b: SeriesRequest): SeriesRequest {
  const emptyDays = [...(a.emptyDays ?? []), ...(b.emptyDays ?? [])];
  return { ...a, ranges: [...a.ranges, ...b.ranges], emptyDays };
}

/** Joins the months of one series and format into one request. */
export function selectRebuilds(requests: readonly SeriesRequest[]): (session: Session) => RunSelection {
  const together = new Map<string, SeriesRequest>();
  for (const request of requests) {
    const id = JSON.stringify([request.series, request.settings.format]);
    const known = together.get(id);
    together.set(id, known === undefined ? request : joined(known, request));
  }
  return (session) => ({
    verb: 'vision',
    requests: [...together.values()],
    hasListing: true,
    what: `${countText(requests.length, 'month')} to rebuild`,
    range: 'from daily objects',
    notes: [],
    ended: [],
    dataPath: join(session.paths.root, session.venue.name),
  });
}
