/** Months that the lake holds from monthly objects, and better from their days. */
import { join } from 'node:path';
import { monthOf, monthPeriod, parsePeriod } from '../calendar.js';
import { seriesFolder } from '../lake/layout.js';
import { isFromRest, readManifest } from '../lake/manifest.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import type { Series } from '../task.js';
import { seriesName } from '../task.js';
import { countText } from '../units.js';
import type { AuditedMonth } from './audit-archive.js';
import type { Session } from './session.js';
import type { Wanted } from './wanted.js';

export interface Rebuilds {
  readonly requests: readonly SeriesRequest[];
  /** Why a month stays as it is. */
  readonly notes: readonly string[];
}

/** What the days of a month take the place of, in each format in which the lake holds it. */
export async function rebuildsOf(
  { paths, venue }: Pick<Session, 'paths' | 'venue'>,
  { audit, hasAllDays }: AuditedMonth,
): Promise<Rebuilds> {
  const { series, month: text } = audit;
  const period = parsePeriod('monthly', text);
  if (!audit.isMonthlyWorse || period === undefined) return NONE;
  const manifest = await readManifest(await paths.folder(seriesFolder(venue.name, series)));
  const requests: SeriesRequest[] = [];
  const notes: string[] = [];
  for (const format of ['parquet', 'csv', 'zip'] as const) {
    const line = manifest[format].ofMonth(monthOf(period.from));
    if (line === undefined || isFromRest(line)) continue;
    const why =
      format === 'zip'
        ? 'it is held as zip'
        : line.settings.cadence === 'monthly'
          ? 'it is held with --cadence monthly'
          : hasAllDays
            ? undefined
            : 'the archive has no daily object of some of its days, or one could not be read';
    if (why === undefined) requests.push(requestOf(series, period.from, line.settings));
    else notes.push(`${seriesName(series)} ${text} stays as it is: ${why}`);
  }
  return { requests, notes };
}

const NONE: Rebuilds = { requests: [], notes: [] };

function requestOf(series: Series, firstDay: number, settings: SeriesRequest['settings']): SeriesRequest {
  const { from, to } = monthPeriod(monthOf(firstDay));
  return { series, settings, cadences: ['daily'], ranges: [{ from, to }], exact: true, rewrites: true };
}

/** Months of one series and format are one request: it is planned at once. */
export function wantRebuilds(requests: readonly SeriesRequest[]): (session: Session) => Wanted {
  const together = new Map<string, SeriesRequest>();
  for (const request of requests) {
    const id = JSON.stringify([request.series, request.settings.format]);
    const known = together.get(id);
    together.set(
      id,
      known === undefined ? request : { ...known, ranges: [...known.ranges, ...request.ranges] },
    );
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
