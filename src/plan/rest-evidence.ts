/** What REST has of a series: evidence against a beginning, an end or a pause that the archive alone shows. */
import { memoized } from '../model/by-name.js';
import { dayOf, startOfDay } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { seriesName, type Period, type Series } from '../model/task.js';
import type { DayRange } from '../lake/catalogue/spans.js';
import { NOT_IN_REST, type TimeSpan } from '../exchange/rest-rows.js';
import { restSpan, routesOf } from '../exchange/routes.js';
import type { Exchange } from '../exchange/exchange.js';
import { findDataset } from '../exchange/exchange-spec.js';
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

/** The requests of a run, and REST. */
export interface RestRun {
  readonly exchange: Exchange;
  readonly rest: Pick<Rest, 'pages'>;
  readonly requests: readonly { readonly series: Series; readonly rest?: RestOffer | undefined }[];
}

/** What REST has of the series for which a run uses it. All methods reject if REST does not answer. */
export class RestEvidence {
  readonly #offers: ReadonlyMap<string, RestOffer>;
  readonly #firstTimes = memoized<number | undefined>();

  constructor(private readonly context: RestRun) {
    this.#offers = new Map(
      context.requests.flatMap(({ series, rest }) =>
        rest === undefined ? [] : [[seriesName(series), rest] as const],
      ),
    );
  }

  /** The first of these days of which REST, in a run that uses it, has rows. */
  async firstDayIn(series: Series, stretch: DayRange): Promise<number | undefined> {
    const { exchange } = this.context;
    const days = keptByRest(this.#offers.get(seriesName(series)), stretch);
    const spec = findDataset(exchange, series.market, series.dataset);
    if (days === undefined || spec === undefined) return undefined;
    const at = await this.#firstTimes(`${seriesName(series)} ${days.from} ${days.to}`, () =>
      firstTimeInRest(this.context, series, restSpan(spec, days)),
    );
    return at === undefined ? undefined : dayOf(at, exchange);
  }

  /** Whether REST, in a run that uses it, has rows of the day of this time (epoch milliseconds), before or after it. */
  async hasRows(series: Series, side: 'before' | 'after', atMs: number): Promise<boolean> {
    const { exchange } = this.context;
    const day = dayOf(atMs, exchange);
    if (keptByRest(this.#offers.get(seriesName(series)), { from: day, to: day + 1 }) === undefined)
      return false;
    const [fromMs, toMs] =
      side === 'before' ? [startOfDay(day, exchange), atMs] : [atMs + 1, startOfDay(day + 1, exchange)];
    return (await firstTimeInRest(this.context, series, { fromMs, toMs })) !== undefined;
  }
}

/** The time of the first row in a span, by one page of REST; undefined if it has none. Rejects if REST does not answer. */
async function firstTimeInRest(
  { exchange, rest }: Pick<RestRun, 'exchange' | 'rest'>,
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
