/** The derivative tickers of Tardis: a row for each time at which a funding rate, an open interest, or a price is known. */
import { DAY_MS, parseDay } from '../../model/calendar.js';
import { intervalsOf, type DatasetSpec } from '../../exchange/exchange-spec.js';
import { daysOf, onDay, type SeriesRows } from './export-file.js';

export const INDEX = 'indexPriceKlines';

/** The close price of a candle is known at its end. Its close time is the last millisecond of the candle. */
const END = '(epoch_us(close_time) // 1000 + 1) * 1000';
/** The values of a ticker, and the microsecond from which they are known. */
export const TICKERS: Readonly<Record<string, (spec: DatasetSpec) => string>> = {
  fundingRate: () =>
    'epoch_us(calc_time) AS timestamp, epoch_us(calc_time) AS funding_timestamp, num(last_funding_rate) AS funding_rate',
  metrics: (spec) => `${knownUs(spec)} AS timestamp, num(sum_open_interest) AS open_interest`,
  markPriceKlines: () => `${END} AS timestamp, num(close) AS mark_price`,
  [INDEX]: () => `${END} AS timestamp, num(close) AS index_price`,
};

/** No source need have all columns. */
const NO_VALUES = `SELECT NULL::BIGINT AS timestamp, NULL::BIGINT AS funding_timestamp, NULL::VARCHAR AS funding_rate,
  NULL::VARCHAR AS open_interest, NULL::VARCHAR AS index_price, NULL::VARCHAR AS mark_price WHERE false`;

/** The tickers of a contract, for each day: a row for each time at which a value is known. `pair`: the index prices of its pair. */
export function tickersOf(contract: readonly SeriesRows[], pair: readonly SeriesRows[]) {
  const own = shortest(contract.filter(({ series }) => Object.hasOwn(TICKERS, series.dataset)));
  const all = [...own, ...shortest(pair)];
  // The last metrics of a day are known at 00:00 of the next day, and so is its last candle.
  return daysOf(own, 1).map((day) => {
    const sources = all.map((source) => onDay(source, day, 1)).filter(({ files }) => files.length > 0);
    const values = sources.map(
      ({ series, spec }, at) => `SELECT ${TICKERS[series.dataset]?.(spec) ?? ''} FROM r${at}`,
    );
    // At most one source has a value of a column at a time.
    const from = `max(funding_timestamp) AS funding_timestamp, max(funding_rate) AS funding_rate, NULL AS predicted_funding_rate,
        max(open_interest) AS open_interest, NULL AS last_price, max(index_price) AS index_price, max(mark_price) AS mark_price
      FROM (${[NO_VALUES, ...values].join(' UNION ALL BY NAME ')})
      WHERE timestamp >= ${dayUs(day)} AND timestamp < ${dayUs(day + 1)} GROUP BY timestamp ORDER BY timestamp`;
    return { day, sources, time: 'timestamp', from };
  });
}

/** The start of a day in microseconds since 1970. Tardis has UTC days. */
function dayUs(day: number): string {
  return String(day * DAY_MS * 1000);
}

/** Length of the interval of a row of metrics. */
const METRICS_US = 300_000_000;

/**
 * The time at which a row of metrics was known: the end of its interval. Labels mark the start of the interval; in archives that changed their
 * labels, the end before the change. The label of the change occurs twice with different values, so its rows have no time (NULL).
 */
function knownUs({ rest }: DatasetSpec): string {
  const label = 'epoch_us(create_time)';
  const change = rest !== undefined && 'joins' in rest ? parseDay(rest.endLabelsBefore ?? '') : undefined;
  if (change === undefined) return `${label} + ${METRICS_US}`;
  const changeUs = dayUs(change);
  return `CASE WHEN ${label} < ${changeUs} THEN ${label} WHEN ${label} > ${changeUs} THEN ${label} + ${METRICS_US} END`;
}

/** Of series that differ in their interval, the one with the shortest. */
function shortest(sources: readonly SeriesRows[]): SeriesRows[] {
  const ranked = sources.toSorted((a, b) => rankOf(a) - rankOf(b));
  const datasets = ranked.map(({ series }) => series.dataset);
  return ranked.filter((_, at) => datasets.indexOf(datasets[at] ?? '') === at);
}

/** The intervals of a dataset are in order of their length. */
function rankOf({ series: { interval = '' }, spec }: SeriesRows): number {
  return (intervalsOf(spec) ?? []).indexOf(interval);
}
