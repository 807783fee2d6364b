/** Judges a series: reads its manifest, and computes the states of its days. */
import { dayOf } from '../../model/calendar.js';
import { toCryptodlError, type CryptodlError } from '../../model/errors.js';
import { seriesName, type Format, type Series } from '../../model/task.js';
import type { Exchange } from '../../exchange/exchange.js';
import { statesOf } from './day-states.js';
import type { OrderedFormats, ReportedFailure, SeriesStates, StateTerms } from './day-states.js';
import type { OrderedDays } from './ordered-series.js';
import { readSeries } from './read-series.js';
import { union, type Spans } from './spans.js';

export interface JudgeTerms {
  /** The ranges of days to judge a series in. Without `from` or `to`, a range begins or ends with the own days of the series. */
  readonly rangesOf: (series: Series) => readonly Partial<OrderedDays>[];
  /** See `StateTerms.ordered`. */
  readonly orderedOf?: (series: Series) => OrderedFormats | undefined;
  /** Undefined: all. Series that hold nothing and record absences have none of them. */
  readonly formats?: readonly Format[] | undefined;
  readonly nowMs: number;
  /** Of the last failure report, by the name of the series. */
  readonly failures?: ReadonlyMap<string, readonly ReportedFailure[]> | undefined;
  /** Called for each manifest line or manifest that cannot be read; the others are still read. */
  readonly onRefused: (error: CryptodlError) => void;
}

export type DatasetTerms = Pick<StateTerms, 'spec' | 'halts'>;

/** Empty for a manifest that cannot be read. */
export async function judgedSeries(
  root: string,
  exchange: Exchange,
  series: Series,
  terms: JudgeTerms & DatasetTerms,
): Promise<SeriesStates[]> {
  const { rangesOf, orderedOf, formats, nowMs, failures, onRefused, spec, halts } = terms;
  const own = {
    spec,
    halts,
    today: dayOf(nowMs, exchange),
    failures: failures?.get(seriesName(series)) ?? [],
    ordered: orderedOf?.(series),
  };
  const isWanted = ({ format }: SeriesStates): boolean =>
    formats === undefined || format === undefined || formats.includes(format);
  try {
    const read = await readSeries(root, exchange, series);
    for (const error of read.refused) onRefused(error);
    return rangesOf(series).flatMap((range) => statesOf(series, read, { ...own, range }).filter(isWanted));
  } catch (error) {
    onRefused(toCryptodlError(error));
    return [];
  }
}

/** The listed halts of the trading that the dataset records. */
export function haltsOf(exchange: Exchange, { market, dataset }: Pick<Series, 'market' | 'dataset'>): Spans {
  const seconds = (iso: string): number => (Date.parse(iso) - exchange.dayStartMs) / 1000;
  return union(
    exchange
      .halts()
      .filter((halt) => halt.market === market && halt.datasets.includes(dataset))
      .flatMap(({ from, to }) => [seconds(from), seconds(to)]),
  );
}
