/** `--strict`: the series of a run that lack data in its range, by the day states of `coverage` and `check`. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { dueEnd, type OrderedDays } from '../../lake/catalogue/ordered-series.js';
import { dayOf } from '../../model/calendar.js';
import { seriesName, type Series } from '../../model/task.js';
import type { RunSelection } from '../../plan/select/selection.js';
import { findDataset, hasLongBars } from '../../exchange/exchange-spec.js';
import { lakeFlag } from '../../text/printable.js';
import type { Session } from '../session/session.js';

/** Counts the series that lack data that must be published by now, also for earlier runs, except what is proven to be absent. Warns of them. */
export async function countLacking(
  { paths, exchange, nowMs, observer, stop }: Session,
  { requests, verb }: RunSelection,
): Promise<number> {
  const ofRest = verb === 'metrics' ? ({ hasRest: true } as const) : {};
  const asked = new Map<string, { readonly series: Series; readonly ranges: Partial<OrderedDays>[] }>();
  for (const { series, ranges, sinceDay = ranges[0]?.from, settings } of requests) {
    const cadence = verb === 'metrics' ? undefined : settings.cadence;
    const spec = findDataset(exchange, series.market, series.dataset);
    const { interval } = series;
    // Bars above a day have daily objects only for some symbols. Of other series, the run has asked for each day before today.
    const end = hasLongBars(spec, interval)
      ? dueEnd(spec, { interval, cadence, exchange, nowMs })
      : dayOf(nowMs, exchange);
    const to = Math.min(end, ranges.at(-1)?.to ?? end);
    const from = sinceDay === undefined || sinceDay === -Infinity ? {} : { from: sinceDay };
    const known = asked.get(seriesName(series)) ?? { series, ranges: [] };
    asked.set(seriesName(series), known);
    if ((from.from ?? 0) < to) known.ranges.push({ ...from, to, ...ofRest });
  }
  const selected = [...asked.values()].map(({ series }) => series);
  const states = openCatalogue(paths.root, exchange, stop.signal).states(selected, {
    rangesOf: (series) => asked.get(seriesName(series))?.ranges ?? [],
    nowMs,
    onRefused: () => undefined,
  });
  const lacking = new Set<string>();
  for await (const { series, missing } of states) if (missing > 0) lacking.add(seriesName(series));
  if (lacking.size > 0)
    observer.warn(
      `--strict: ${lacking.size} of ${asked.size} series lack data: cryptodl coverage${lakeFlag(paths.root)} shows it`,
    );
  return lacking.size;
}
