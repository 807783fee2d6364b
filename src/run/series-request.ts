import type { SeriesRequest } from '../plan/plan-series.js';
import type { Range } from '../plan/range.js';
import type { ChosenDataset } from './choose-datasets.js';
import type { Session } from './session.js';
import { settingsOf } from './settings-of.js';

/** One symbol of a dataset over the range, as the flags say it is written. */
export function seriesRequest(
  session: Session,
  { market, spec, interval, cadences }: ChosenDataset,
  symbol: string,
  range: Range,
): SeriesRequest {
  const layer = interval === undefined ? {} : { interval };
  return {
    series: { market, dataset: spec.name, ...layer, symbol },
    settings: settingsOf(session, spec, interval),
    cadences,
    ranges: [{ from: range.from, to: range.to }],
  };
}
