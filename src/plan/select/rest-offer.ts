/** The periods of a series that REST serves at the time of the run. */
import { dayOf, dayText, parseDay } from '../../model/calendar.js';
import { DAY_SECONDS, HOUR_MS, DAY_MS } from '../../model/units.js';
import type { RestOffer } from '../rest-evidence.js';
import type { SelectedSeries } from '../series-request.js';
import type { Period, Series } from '../../model/task.js';
import { SETTLE_MS } from '../../exchange/rest-rows.js';
import { reachMs, routesOf, takesSymbol } from '../../exchange/routes.js';
import {
  datasetsOf,
  findDataset,
  hasLongBars,
  isArchived,
  rowSeconds,
} from '../../exchange/exchange-spec.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { DownloadVerb, SelectionContext } from './selection.js';

export interface OfferOptions {
  readonly exchange: Exchange;
  readonly nowMs: number;
  readonly mode: RestOffer['mode'];
  readonly includeToday: boolean;
  /** REST also completes held objects of the archive that lack rows. */
  readonly standsIn?: true;
  /** REST also serves objects that the archive lists, while the archive does not respond. */
  readonly substitutes?: true;
}

/** The days of a series that REST serves; undefined if REST does not have the series, or if its bars are longer than a day. */
export function restOffer(series: Series, options: OfferOptions): RestOffer | undefined {
  const { exchange, nowMs, mode, includeToday } = options;
  const spec = findDataset(exchange, series.market, series.dataset);
  if (spec?.rest === undefined || !takesSymbol(exchange, spec, series.market, series.symbol))
    return undefined;
  // Bars that are longer than a day do not fit into day periods.
  if (hasLongBars(spec, series.interval)) return undefined;
  const today = dayOf(nowMs, exchange);
  const from = firstDayOfRest(series, options);
  const hasMonths = isArchived(spec) && !spec.cadences.includes('daily');
  const settledTo = dayOf(nowMs - SETTLE_MS, exchange);
  const seconds = rowSeconds(spec, series.interval);
  const hasFewRows = (period: Period): boolean =>
    hasMonths ||
    period.cadence === 'daily' ||
    (seconds !== undefined && ((period.to - period.from) * DAY_SECONDS) / seconds <= MOST_ROWS);
  return {
    mode,
    from,
    to: includeToday ? today + 1 : today,
    today,
    settledTo,
    hasMonths,
    ...(options.standsIn === true ? { standsIn: hasFewRows } : {}),
    ...(options.substitutes === true ? { substitutes: hasFewRows } : {}),
  };
}

/** The first day that REST has completely. */
export function firstDayOfRest(
  series: Series,
  { exchange, nowMs }: Pick<OfferOptions, 'exchange' | 'nowMs'>,
): number {
  const reach = reachMs(exchange, series);
  // The oldest time that REST serves advances during the run, so the first day needs a margin.
  if (reach !== undefined) return Math.ceil((nowMs - reach + MARGIN_MS - exchange.dayStartMs) / DAY_MS);
  const firsts = routesOf(exchange, series).flatMap(({ route }) => parseDay(route.first ?? '') ?? []);
  return firsts[0] ?? parseDay(exchange.firstDay) ?? 0;
}

/** The rows of a period are kept in memory until they are written: about a month of 1m bars. */
const MOST_ROWS = 50_000;

/** The longest expected time from the start of a run to the request of the oldest day. */
const MARGIN_MS = HOUR_MS;

/**
 * The REST offer of a series. With --fill rest for `vision`, and with --join archive for `metrics` if the archive has the dataset, REST
 * serves only periods that the archive lacks or does not deliver.
 */
export function offerOf(
  { exchange, nowMs, options }: SelectionContext,
  series: Series,
  verb: DownloadVerb,
): RestOffer | undefined {
  const includeToday = verb === 'metrics' && options.includeToday;
  const fill = { exchange, nowMs, mode: 'fill', includeToday, substitutes: true } as const;
  if (verb === 'vision')
    return options.fill === undefined || options.format === 'zip' ? undefined : restOffer(series, fill);
  const spec = findDataset(exchange, series.market, series.dataset);
  const isJoined = options.join !== undefined && spec !== undefined && isArchived(spec);
  return restOffer(series, isJoined ? fill : { exchange, nowMs, mode: 'only', includeToday });
}

/** The line for days that REST no longer serves, with the command that downloads them from the archive, if it has them. */
export function retentionNotes(
  { exchange }: SelectionContext,
  requests: readonly SelectedSeries[],
): string[] {
  const shortened = requests.find(
    ({ series, rest, ranges }) =>
      rest?.mode === 'only' &&
      reachMs(exchange, series) !== undefined &&
      ranges.some(({ from }) => from < rest.from),
  );
  if (shortened?.rest === undefined) return [];
  const { market, dataset } = shortened.series;
  const hasOlder = datasetsOf(exchange, market).find(
    ({ rest }) => rest !== undefined && 'joins' in rest && rest.joins.includes(dataset),
  );
  return [
    `kept       REST keeps statistics for 30 days, now from ${dayText(shortened.rest.from)} on${hasOlder === undefined ? '' : `; the archive has older days: cryptodl vision --market ${market} --dataset ${hasOlder.name}`}`,
  ];
}
