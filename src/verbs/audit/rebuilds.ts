/** `audit --prefer daily`: selects the months of the lake whose daily objects are better than the monthly one. */
import { grouped } from '../../model/by-name.js';
import { seriesName, FORMATS } from '../../model/task.js';
import { countText } from '../../model/units.js';
import type { RunSession } from '../../run/session/session.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import { eachDay, monthOf, parsePeriod } from '../../model/calendar.js';
import { isFromRest } from '../../model/manifest-line.js';
import type { RunSelection } from '../../plan/select/selection.js';
import type { AuditFinding, AuditedMonth } from './findings.js';

/** Findings that disappear when daily objects replace the monthly one. */
const MENDED_BY_DAYS: ReadonlySet<AuditFinding['kind']> = new Set(['rows-missing', 'rows-differ']);

export interface Rebuild {
  /** One request for each format in which the lake holds the monthly object. */
  readonly requests: readonly SelectedSeries[];
  /** The number of findings of which the lake is free after the requests. */
  readonly mended: number;
  /** The reason why the month stays as it is. */
  readonly note?: string;
}

/** Requests that rebuild the month from daily objects if these have all rows of the monthly object, and more rows or other values. */
export async function rebuildOf({ paths, exchange }: RunSession, month: AuditedMonth): Promise<Rebuild> {
  const { series, findings } = month;
  const mended = findings.filter(({ kind }) => MENDED_BY_DAYS.has(kind)).length;
  const period = parsePeriod('monthly', month.month);
  // If each side has rows that the other lacks, neither is known to be right.
  const isUnclear = findings.some(({ kind }) => kind === 'rows-extra');
  if (mended === 0 || isUnclear || period === undefined) return { requests: [], mended: 0 };
  const days = eachDay(period);
  const manifest = await readHeld(paths.root, exchange, series);
  const lines = FORMATS.flatMap((format) => manifest[format].ofMonth(monthOf(period.from)) ?? []);
  const heldSettings = lines.filter((line) => !isFromRest(line)).map(({ settings }) => settings);
  const isWhole = month.failed.size === 0 && month.rowsWithoutDay === 0;
  const requests = heldSettings
    .filter(({ format, cadence }) => isWhole && format !== 'zip' && cadence !== 'monthly')
    .map((settings): SelectedSeries => ({
      series,
      settings,
      cadences: ['daily'],
      ranges: [{ from: period.from, to: period.to }],
      exact: true,
      rewrites: 'always',
      emptyDays: days.filter((day) => !month.days.has(day)),
    }));
  if (requests.length < heldSettings.length)
    return {
      requests,
      mended: 0,
      note: `${seriesName(series)} ${month.month} is not rebuilt: it is a zip, or of --cadence monthly, or one of its days has no daily object that can be read`,
    };
  // A lake that holds the days instead of the month is free of them without a request.
  const holdsDays = FORMATS.some((format) => days.some((day) => manifest[format].hasDay(day)));
  return { requests, mended: requests.length > 0 || holdsDays ? mended : 0 };
}

/** Joins the months of one series and format into one request. */
export function selectRebuilds(requests: readonly SelectedSeries[]): (session: RunSession) => RunSelection {
  const together = grouped(requests, ({ series, settings }) => JSON.stringify([series, settings.format]));
  const joined = [...together.values()].map((same): SelectedSeries => ({
    ...(same.at(-1) ?? same[0]),
    ranges: same.flatMap(({ ranges }) => ranges),
    emptyDays: same.flatMap(({ emptyDays = [] }) => emptyDays),
  }));
  return () => ({
    verb: 'vision',
    requests: joined,
    hasListing: true,
    what: `${countText(requests.length, 'month')} to rebuild`,
    range: 'from daily objects',
    notes: [],
  });
}
