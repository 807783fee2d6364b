/** Months that the lake holds from monthly objects, and better from their days. */
import { join } from 'node:path';
import { monthOf, parsePeriod } from '../model/calendar.js';
import { seriesFolder } from '../lake/layout.js';
import { isFromRest, readManifest } from '../lake/manifest.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import type { Period, Settings } from '../model/task.js';
import { seriesName } from '../model/task.js';
import { countText } from '../model/units.js';
import type { AuditedMonth } from './audit-archive.js';
import { isBroken } from '../download/months-from-days.js';
import type { Session } from '../download/session.js';
import type { Wanted } from '../select/selection.js';

export interface Rebuilds {
  readonly requests: readonly SeriesRequest[];
  /** Why a month stays as it is. */
  readonly notes: readonly string[];
  /** Of the month the lake holds days and nothing of the monthly object, once the requests are done. */
  readonly isFromDays: boolean;
}

/** What the days of a month take the place of, in each format in which the lake holds it. */
export async function rebuildsOf(
  { paths, venue }: Pick<Session, 'paths' | 'venue'>,
  month: AuditedMonth,
): Promise<Rebuilds> {
  const { series, month: text, isMonthlyWorse } = month.audit;
  const period = parsePeriod('monthly', text);
  const isUnreadable = month.failures.some(({ key, error }) => key === month.monthlyKey && isBroken(error));
  if ((!isMonthlyWorse && !isUnreadable) || period === undefined) return NONE;
  const manifest = await readManifest(await paths.folder(seriesFolder(venue.name, series)));
  const requests: SeriesRequest[] = [];
  const notes: string[] = [];
  let isFromDays = false;
  for (const format of ['parquet', 'csv', 'zip'] as const) {
    const held = manifest[format];
    const line = held.ofMonth(monthOf(period.from));
    const holdsDays = daysOf(period).some((day) => held.ofDay(day) !== undefined);
    isFromDays ||= holdsDays;
    // What nobody can read any more is no worse where it is held: it was sound when it was written.
    const settings = isUnreadable
      ? line === undefined && !holdsDays
        ? held.lines().at(-1)?.settings
        : undefined
      : line?.settings;
    if (settings === undefined || (line !== undefined && isFromRest(line))) continue;
    const why = isUnreadable ? whyNotFromDays(month, settings) : whyItStays(month, settings);
    if (why === undefined) requests.push(requestOf(month, period, settings));
    else notes.push(`${seriesName(series)} ${text} stays as it is: ${why}`);
  }
  return { requests, notes, isFromDays: notes.length === 0 && (isFromDays || requests.length > 0) };
}

const NONE: Rebuilds = { requests: [], notes: [], isFromDays: false };

function whyItStays(month: AuditedMonth, settings: Settings): string | undefined {
  if (settings.format === 'zip') return 'it is held as zip';
  if (month.audit.rowsWithoutDay > 0) return 'the archive has no daily object of some of its days';
  return whyNotFromDays(month, settings);
}

function whyNotFromDays(
  { failures, monthlyKey, days }: AuditedMonth,
  settings: Settings,
): string | undefined {
  if (settings.cadence === 'monthly') return 'it is held with --cadence monthly';
  if (days.size === 0) return 'the archive has no daily objects of it';
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

/** Months of one series and format are one request: it is planned at once. */
export function wantRebuilds(requests: readonly SeriesRequest[]): (session: Session) => Wanted {
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
    what: `${countText(requests.length, 'month')} whose monthly object is worse`,
    range: 'their days',
    notes: [],
    ended: [],
    dataPath: join(session.paths.root, session.venue.name),
    query: undefined,
  });
}
