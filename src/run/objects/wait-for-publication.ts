/** `--wait-for-publication`: checks less and less often whether the archive has the newest selected period of each series. */
import { dayOf, periodText, startOfDay, UTC, dayPeriod, monthOf, monthPeriod } from '../../model/calendar.js';
import { seriesName, type Period, type Series } from '../../model/task.js';
import { LATEST_DATE_MS, instantText, listText } from '../../model/units.js';
import type { Until } from '../../plan/options/dates.js';
import { SERIES_AT_ONCE, listOrProbe } from '../../plan/plan.js';
import type { RunSelection } from '../../plan/select/selection.js';
import type { RunSession } from '../session/session.js';
import { grouped } from '../../model/by-name.js';
import type { PlanContext, SelectedSeries } from '../../plan/series-request.js';
import { absenceReason, LONGEST_DELAY_DAYS } from '../../plan/series-listing.js';
import { mapOrdered } from '../../model/in-order.js';
import { findDataset, hasLongBars } from '../../exchange/exchange-spec.js';

const FIRST_DELAY_MS = 60_000;
const LONGEST_DELAY_MS = 600_000;

export type WaitingSession = Pick<
  RunSession,
  'options' | 'clock' | 'observer' | 'stop' | 'nowMs' | 'currentMs' | 'exchange' | 'listing' | 'probe'
>;

/** Resolves when the periods are published, or at the end of the wait: the run then goes on with the published ones. */
export async function waitForPublication(
  session: WaitingSession,
  selection: Pick<RunSelection, 'requests' | 'hasListing'>,
): Promise<void> {
  const until = session.options.waitForPublication;
  // With `--revisions only`, the run takes new revisions of held objects and nothing else.
  if (until === undefined || session.options.revisions === 'only') return;
  const { clock, observer, stop, exchange } = session;
  const untilMs = Math.min(epochOf(until, session.nowMs), LATEST_DATE_MS);
  const untilText = `${instantText(untilMs).slice(0, 16)} UTC`;
  const today = dayOf(session.nowMs, exchange);
  const context = { exchange, today, listSeries: listOrProbe(session, selection.hasListing) };
  let left = await unpublished(context, awaitedOf(context, selection.requests));
  let delayMs = FIRST_DELAY_MS;
  let isTold = false;
  while (left.length > 0) {
    const leftMs = untilMs - session.currentMs();
    if (leftMs <= 0) {
      observer.waiting(`not published by ${untilText}: ${described(left)}; continuing without them`);
      return;
    }
    if (!isTold)
      observer.waiting(
        `waiting until ${untilText} at the latest (--wait-for-publication): the archive has no ${described(left)} yet`,
      );
    isTold = true;
    observer.event('not-published', { series: left.length, delayMs: Math.min(delayMs, leftMs) });
    await clock.sleep(Math.min(delayMs, leftMs), stop.signal);
    delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
    left = await unpublished(context, left);
  }
}

/** The end of the wait in epoch ms. A time of day belongs to the UTC day on which the run began; if it has passed, the run does not wait. */
function epochOf(until: Until, nowMs: number): number {
  switch (until.kind) {
    case 'time':
      return startOfDay(dayOf(nowMs, UTC), UTC) + until.sinceMidnightMs;
    case 'instant':
      return until.epochMs;
    case 'duration':
      return nowMs + until.durationMs;
  }
}

/** `um klines 1m BTCUSDT 2026-11-20 and 3 more` */
function described(awaited: readonly Expected[]): string {
  const names = awaited.map(({ series, period }) => `${seriesName(series)} ${periodText(period)}`);
  return listText(names, 1);
}

/** One series, and the newest selected period that can be published by now. */
interface Expected {
  readonly series: Series;
  readonly period: Period;
}

type PublicationContext = Pick<PlanContext, 'exchange' | 'today' | 'listSeries'>;

/** Leaves out series from REST, because REST publishes nothing, and bars longer than a day, because they have no object per day. */
function awaitedOf({ exchange, today }: PublicationContext, requests: readonly SelectedSeries[]): Expected[] {
  return requests.flatMap(({ series, cadences, ranges, rest }) => {
    const last = ranges.at(-1);
    const spec = findDataset(exchange, series.market, series.dataset);
    if (rest?.mode === 'only' || last === undefined || hasLongBars(spec, series.interval)) return [];
    const day = Math.min(last.to, today) - 1;
    const period = cadences.includes('daily') ? dayPeriod(day) : lastWholeMonth(day, today);
    const isWanted = period.to > last.from && cadences.length > 0;
    return isWanted ? [{ series, period }] : [];
  });
}

/** The month of the day, or the previous month while that month is not over. */
function lastWholeMonth(day: number, today: number): Period {
  const period = monthPeriod(monthOf(day));
  return period.to <= today ? period : monthPeriod(monthOf(day) - 1);
}

/**
 * Series whose period is not published yet but will be. A series that ended before the others of its dataset does not count:
 * otherwise, each delisted symbol would cost the whole wait for two weeks.
 */
async function unpublished(context: PublicationContext, awaited: readonly Expected[]): Promise<Expected[]> {
  const looks: Awaited<ReturnType<typeof lookAt>>[] = [];
  for await (const look of mapOrdered(awaited, SERIES_AT_ONCE, (one) => lookAt(context, one)))
    looks.push(look);
  return [...grouped(looks, groupOf).values()].flatMap((group) => {
    const front = Math.max(...group.map(({ before }) => before));
    return group.filter(({ isMissing, before }) => isMissing && before === front);
  });
}

const groupOf = ({ series: { market, dataset, interval }, period }: Expected): string =>
  [market, dataset, interval ?? '', period.from].join(' ');

async function lookAt({ exchange, today, listSeries }: PublicationContext, { series, period }: Expected) {
  // The previous period shows whether the series is still published, even if only sidecars can be requested.
  const before = period.cadence === 'daily' ? period.from - 1 : monthPeriod(monthOf(period.from) - 1).from;
  const listing = await listSeries(series, period.cadence, { from: before, to: period.to, today });
  const span = findDataset(exchange, series.market, series.dataset)?.spans[period.cadence];
  const earlier = [...listing.objects.keys()].filter((from) => from < period.from);
  return {
    series,
    period,
    /** Whether the period is not published yet, judged by the listing of this series alone. */
    isMissing:
      !listing.objects.has(period.from) &&
      absenceReason(listing, period, span) === 'not-published-yet' &&
      (listing.last?.to ?? 0) >= today - LONGEST_DELAY_DAYS[period.cadence],
    /** First day of the last published period before the expected one; -Infinity if the listing has none. */
    before: Math.max(Number.NEGATIVE_INFINITY, ...earlier),
  };
}
