/** What REST has of a series at the moment of the run. */
import { DAY_MS, dayOf, dayText, parseDay } from '../model/calendar.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import type { RestOffer } from '../plan/rest-periods.js';
import type { Period, Series } from '../model/task.js';
import { reachMs, routesOf, takesSymbol } from '../source/routes.js';
import { findDataset, isArchived, rowSeconds } from '../source/venue.js';
import type { Source } from '../source/source.js';
import type { Asking } from './selection.js';

export interface OfferOptions {
  readonly venue: Source;
  readonly nowMs: number;
  readonly mode: RestOffer['mode'];
  readonly includeToday: boolean;
  /** It is asked also for what is held and lacks rows. */
  readonly standsIn?: true;
  /** It is asked also for what the archive lists, while the archive does not answer. */
  readonly substitutes?: true;
}

/** Undefined when REST has nothing of it. */
export function restOffer(series: Series, options: OfferOptions): RestOffer | undefined {
  const { venue, nowMs, mode, includeToday } = options;
  const spec = findDataset(venue, series.market, series.dataset);
  if (spec?.rest === undefined || !takesSymbol(venue, spec, series.market, series.symbol)) return undefined;
  // Bars longer than a day have no days to fill.
  if (series.interval !== undefined && rowSeconds(spec, series.interval) === undefined) return undefined;
  const today = dayOf(nowMs, venue);
  const reach = reachMs(venue, series);
  const firsts = routesOf(venue, series).flatMap(({ route }) => parseDay(route.first ?? '') ?? []);
  const first = firsts[0] ?? parseDay(venue.firstDay) ?? 0;
  // The moment of the wall moves on while the run goes on: only days that stay whole.
  const from = reach === undefined ? first : Math.ceil((nowMs - reach + WALL_MS - venue.dayStartMs) / DAY_MS);
  const hasMonths = isArchived(spec) && !spec.cadences.includes('daily');
  const settledTo = dayOf(nowMs - SETTLE_MS, venue);
  const seconds = rowSeconds(spec, series.interval);
  const standsIn = (period: Period): boolean =>
    period.cadence === 'daily' ||
    (seconds !== undefined && ((period.to - period.from) * 86_400) / seconds <= MOST_ROWS);
  return {
    mode,
    from,
    to: includeToday ? today + 1 : today,
    today,
    settledTo,
    hasMonths,
    ...(options.standsIn === true ? { standsIn } : {}),
    ...(options.substitutes === true
      ? { substitutes: (period: Period) => hasMonths || standsIn(period) }
      : {}),
  };
}

/** Rows of a period are held until they are written: about a month of 1m bars. */
const MOST_ROWS = 50_000;

/** The last rows of a day come seconds after it, and our clock may be ahead of theirs. */
const SETTLE_MS = 3_600_000;

/** How long a run may take until it asks for the oldest day. */
const WALL_MS = 3_600_000;

/** With --fill rest: what REST has of the days that the archive has not got. */
export function fillOf({ options, venue, nowMs }: Asking, series: Series): Pick<SeriesRequest, 'rest'> {
  if (options.fill === undefined || options.format === 'zip') return {};
  const rest = restOffer(series, { venue, nowMs, mode: 'fill', includeToday: false, substitutes: true });
  return rest === undefined ? {} : { rest };
}

/** With --join archive REST has only what the archive lacks, where the archive has the dataset at all. */
export function offerOf(context: Asking, series: Series): RestOffer | undefined {
  const { venue, nowMs, options } = context;
  const spec = findDataset(venue, series.market, series.dataset);
  const isJoined = options.join !== undefined && spec !== undefined && isArchived(spec);
  const includeToday = options.includeToday;
  return isJoined
    ? restOffer(series, { venue, nowMs, mode: 'fill', includeToday, substitutes: true })
    : restOffer(series, { venue, nowMs, mode: 'only', includeToday });
}

/** What REST keeps no more, and where it is: said once, not with every day. */
export function wallNotes({ venue }: Asking, requests: readonly SeriesRequest[]): string[] {
  const walled = requests.find(
    ({ series, rest, ranges }) =>
      rest?.mode === 'only' &&
      reachMs(venue, series) !== undefined &&
      ranges.some(({ from }) => from === undefined || from < rest.from),
  );
  if (walled?.rest === undefined) return [];
  const { market } = walled.series;
  return [
    `kept       REST keeps statistics of 30 days, here from ${dayText(walled.rest.from)} on; the archive has older days: cryptodl vision --market ${market} --dataset metrics`,
  ];
}
