/** The selection of a job of a queue: one series. Its symbol was chosen when the job was made, so no listing of symbols is read. */
import type { Resolved } from '../options/resolve.js';
import { describeSelection, givenFlags, givenSettings } from './selection.js';
import type { RunSelection, SymbolContext } from './selection.js';
import { parseMetricsOptions, requestOf as metricsRequest } from './select-metrics.js';
import { parseSeriesOptions, requestOf as seriesRequest } from './select-series.js';

/** Throws usage errors. */
export function selectJob(
  context: SymbolContext,
  resolved: Resolved,
  verb: 'vision' | 'metrics',
): RunSelection {
  const { options } = context;
  const isOfRest = verb === 'metrics';
  const { range, datasets } = isOfRest ? parseMetricsOptions(context) : parseSeriesOptions(context);
  const given = givenSettings(givenFlags(resolved));
  const [symbol = ''] = options.symbols?.names ?? [];
  const requests = datasets.flatMap((dataset) =>
    isOfRest
      ? metricsRequest(context, dataset, symbol, range)
      : [seriesRequest(context, dataset, symbol, range)],
  );
  return {
    verb,
    requests: requests.map((request) => ({ ...request, given })),
    hasListing: !isOfRest || options.join !== undefined,
    ...describeSelection(context, datasets),
    range: range.text,
    notes: [],
    ended: [],
  };
}
