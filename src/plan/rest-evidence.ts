/** What REST has of a series: evidence against a beginning, an end or a pause that the archive alone shows. */
import { CryptodlError } from '../model/errors.js';
import type { Period, Series } from '../model/task.js';
import type { DayRange } from '../lake/catalogue/spans.js';
import { NOT_IN_REST, type TimeSpan } from '../exchange/rest-rows.js';
import { routesOf } from '../exchange/routes.js';
import type { Exchange } from '../exchange/exchange.js';
import type { Rest } from '../exchange/rest-api.js';

export interface RestOffer {
  /** `only`: REST is the only source. */
  readonly mode: 'only' | 'fill';
  /** First day that REST has completely. */
  readonly from: number;
  /** Day after the last one that may be requested. */
  readonly to: number;
  /** The current day, which is not over yet. */
  readonly today: number;
  /** Periods that end later may not have all of their rows yet. */
  readonly settledTo: number;
  /** Whether a whole month is one period, like a monthly object of the archive. */
  readonly hasMonths: boolean;
  /** Whether a period has few enough rows to complete a held object that lacks some. */
  readonly standsIn?: (period: Period) => boolean;
  /** Whether a period has few enough rows to substitute an object while the archive does not answer. */
  readonly substitutes?: (period: Period) => boolean;
}

/** The days of a stretch that REST keeps; undefined without REST, or if it keeps none of them. */
export function keptByRest(offer: RestOffer | undefined, { from, to }: DayRange): DayRange | undefined {
  const days = offer && { from: Math.max(from, offer.from), to: Math.min(to, offer.today) };
  return days !== undefined && days.from < days.to ? days : undefined;
}

/** The time of the first row in a span, by one page of REST; undefined if it has none. Rejects if REST does not answer. */
export async function firstTimeInRest(
  { exchange, rest }: { readonly exchange: Exchange; readonly rest: Pick<Rest, 'pages'> },
  series: Series,
  span: TimeSpan,
): Promise<number | undefined> {
  const [routed] = routesOf(exchange, series);
  if (routed === undefined) return undefined;
  try {
    for await (const { rows } of rest.pages(routed.route, routed.series, span))
      return rows.find(({ atMs }) => atMs >= span.fromMs && atMs < span.toMs)?.atMs;
  } catch (error) {
    if (!(error instanceof CryptodlError) || !NOT_IN_REST.has(error.code)) throw error;
  }
  return undefined;
}
