/** Splits the selected series into jobs: a month of a series with large files, a year of a series with small ones. */
import { findDataset, defaultPartition } from '../../exchange/exchange-spec.js';
import type { Exchange } from '../../exchange/exchange.js';
import { parseDay, monthOf, monthStart, dayText } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import type { RawValues } from '../../plan/options/resolve.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import { jobData, type JobVerb, type JobData } from './job-data.js';
import type { AskedOrder } from '../../lake/order.js';

/** Months per job. A series whose files are months by default has small months. */
const SMALL_MONTHS = 12;

export interface SplitOptions {
  readonly verb: JobVerb;
  readonly exchange: Exchange;
  /** The first day that is not over. */
  readonly today: number;
  /** Options that all jobs have. */
  readonly shared: RawValues;
  /** The orders of all jobs, which the first job has. */
  readonly orders: readonly AskedOrder[];
}

/**
 * The jobs of all series, newest periods first: jobs that follow each other are then of different series, which workers can write at
 * the same time. Nothing is kept in memory but the requests.
 */
export function* splitSeries(requests: readonly SelectedSeries[], options: SplitOptions): Generator<JobData> {
  let { orders } = options;
  const pending = new Set(
    requests.map((request) => ({ series: request.series, chunks: chunksOf(request, options) })),
  );
  for (const each of pending) {
    const { done, value } = each.chunks.next();
    pending.delete(each);
    if (done === true) continue;
    // Its next job comes after those of the other series.
    pending.add(each);
    yield jobData(options.verb, { ...options.shared, ...seriesOptions(each.series), ...value }, orders);
    orders = [];
  }
}

const seriesOptions = ({ market, dataset, interval, symbol }: Series): RawValues => ({
  market: [market],
  dataset: [dataset],
  ...(interval === undefined ? {} : { interval: [interval] }),
  symbols: [symbol],
});

/** The ranges of the jobs of a series, newest first. */
function* chunksOf(
  { series, ranges }: SelectedSeries,
  { exchange, today }: SplitOptions,
): Generator<Pick<RawValues, 'from' | 'to' | 'include-today'>> {
  const spec = findDataset(exchange, series.market, series.dataset);
  const isSmall = spec === undefined || defaultPartition(spec, series.interval) === 'month';
  const months = isSmall ? SMALL_MONTHS : 1;
  for (const range of ranges.toReversed()) {
    const first = Math.max(range.from, parseDay(exchange.firstDay) ?? 0);
    for (let to = range.to; to > first;) {
      // Years begin in January, so that a later command with another range makes the same jobs.
      const month = monthOf(to - 1);
      const from = Math.max(first, monthStart(month - (month % months)));
      const isToday = to > today;
      const last = isToday ? today - 1 : to - 1;
      if (last >= from)
        yield {
          from: [dayText(from)],
          to: [dayText(last)],
          ...(isToday ? { 'include-today': ['true'] } : {}),
        };
      to = from;
    }
  }
}
