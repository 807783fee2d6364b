/** `audit --prefer daily`: selects the months of the lake whose daily objects are better than the monthly one. */
import { readHeld } from '../catalogue/read-series.js';
import { eachDay, monthOf, parsePeriod } from '../model/calendar.js';
import { isFromRest } from '../lake/manifest-line.js';
import type { SeriesRequest } from '../plan/series-request.js';
import type { Settings } from '../model/task.js';
import { FORMATS, seriesName } from '../model/task.js';
import { countText } from '../model/units.js';
import type { AuditedMonth, AuditFinding } from './audit-finding.js';
import type { Session } from '../download/session.js';
import type { RunSelection } from '../select/selection.js';

/** Findings that disappear when daily objects replace the monthly one. */
const MENDED_BY_DAYS: ReadonlySet<AuditFinding['kind']> = new Set(['rows-missing', 'rows-differ']);

export interface Rebuild {
  /** One request for each format in which the lake holds the monthly object. */
  readonly requests: readonly SeriesRequest[];
  /** The number of findings of which the lake is free after the requests. */
  readonly mended: number;
  /** The reason why the month stays as it is. */
  readonly note?: string;
}

/** Requests that rebuild the month from daily objects if these have all rows of the monthly object, and more rows or other values. */
export async function rebuildOf(
  { paths, venue }: Pick<Session, 'paths' | 'venue'>,
  month: AuditedMonth,
): Promise<Rebuild> {
  const { series, findings } = month;
  const mended = findings.filter(({ kind }) => MENDED_BY_DAYS.has(kind)).length;
  const period = parsePeriod('monthly', month.month);
  // If each side has rows that the other lacks, neither is known to be right.
  const isUnclear = findings.some(({ kind }) => kind === 'rows-extra');
  if (mended === 0 || isUnclear || period === undefined) return { requests: [], mended: 0 };
  const days = eachDay(period);
  const manifest = await readHeld(paths.root, venue, series);
  const lines = FORMATS.flatMap((format) => manifest[format].ofMonth(monthOf(period.from)) ?? []);
  const held = lines.filter((line) => !isFromRest(line)).map(({ settings }) => settings);
  const requests = held
    .filter((settings) => reasonToKeep(month, settings) === undefined)
    .map((settings): SeriesRequest => ({
      series,
      settings,
      cadences: ['daily'],
      ranges: [{ from: period.from, to: period.to }],
      exact: true,
      rewrites: 'always',
      emptyDays: days.filter((day) => !month.days.has(day)),
    }));
  const [why] = held.flatMap((settings) => reasonToKeep(month, settings) ?? []);
  if (why !== undefined)
    return { requests, mended: 0, note: `${seriesName(series)} ${month.month} is not rebuilt: ${why}` };
  // A lake that holds the days instead of the month is free of them without a request.
  const holdsDays = FORMATS.some((format) => days.some((day) => manifest[format].hasDay(day)));
  return { requests, mended: requests.length > 0 || holdsDays ? mended : 0 };
}

function reasonToKeep(month: AuditedMonth, { format, cadence }: Settings): string | undefined {
  if (format === 'zip') return 'the lake holds it as zip';
  if (cadence === 'monthly') return 'the series was downloaded with --cadence monthly';
  if (month.failed.size > 0) return 'one of its days could not be read';
  return month.rowsWithoutDay > 0 ? 'the archive lacks the daily objects of some days' : undefined;
}

/** Joins the months of one series and format into one request. */
export function selectRebuilds(requests: readonly SeriesRequest[]): (session: Session) => RunSelection {
  const together = new Map<string, SeriesRequest>();
  for (const request of requests) {
    const id = JSON.stringify([request.series, request.settings.format]);
    const known = together.get(id);
    const ranges = [...(known?.ranges ?? []), ...request.ranges];
    const emptyDays = [...(known?.emptyDays ?? []), ...(request.emptyDays ?? [])];
    together.set(id, { ...request, ranges, emptyDays });
  }
  return () => ({
    verb: 'vision',
    requests: [...together.values()],
    hasListing: true,
    what: `${countText(requests.length, 'month')} to rebuild`,
    range: 'from daily objects',
    notes: [],
  });
}
