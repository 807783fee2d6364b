/** Covers the selected series of a lake, and counts over all of them. Checks that data files exist, but reads none, and sends no request. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { OrderedFormats, SeriesStates } from '../../lake/catalogue/day-states.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { lakePaths, seriesFolder } from '../../lake/layout.js';
import { readOrders } from '../../lake/orders.js';
import { firstSymlink } from '../../files/path-checks.js';
import { seriesName, type Series } from '../../model/task.js';
import { emptyShardText, isInShard } from '../../plan/options/shard.js';
import { nowMsOf, type CoverageFlag, type VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { readVerbLake, refuseFormat, selectGiven } from '../../plan/select/held-series.js';
import { readLastFailures } from '../failures/last-failures.js';
import { daysOfSymbol, orderedDays, seriesOfOrder } from '../../lake/catalogue/ordered-series.js';
import type { OrderedDays } from '../../lake/catalogue/ordered-series.js';
import type { Exchange } from '../../exchange/exchange.js';
import { tapped } from '../verb/items.js';
import { CoverageCounts } from '../../lake/catalogue/coverage-counts.js';
import { MOST_DAYS, type CoveragePeriod } from '../../lake/catalogue/period-amounts.js';

export type LakeCoverage = Awaited<ReturnType<typeof coverSelected>>;

/** Rejects with usage errors, also for a lake without series, unless it `mayBeEmpty`. */
export async function coverSelected(request: VerbRequest<CoverageFlag>, { mayBeEmpty = false } = {}) {
  const { exchange, resolved, observer } = request;
  const { options, origins } = resolved;
  const nowMs = nowMsOf(request);
  const range: Partial<DayRange> = givenRange(options, nowMs, exchange) ?? {};
  // Undefined for `auto`.
  const by = options.by === 'day' || options.by === 'month' ? options.by : undefined;
  const found = new CoverageCounts();
  const warn = observer.warn.bind(observer);
  const skip = (message: string): void => {
    found.skipped.push(message);
    warn(message);
  };
  const { root, held } = await readVerbLake(request, skip);
  const { known, ordered } = await withOrdered(root, exchange, held, nowMs);
  const chosen = mayBeEmpty && known.length === 0 ? [] : await selectGiven(known, request);
  const isHeld = new Set(held.map(seriesName));
  const isFormatGiven = origins.format !== 'default';
  if (isFormatGiven) await refuseFormat(options.format, chosen, { root, exchange, out: options.out });
  const selected = chosen.filter((series) => isInShard(options.shard, exchange, series));
  if (options.shard !== undefined && selected.length === 0) warn(emptyShardText(options.shard));
  const failures = await readLastFailures(lakePaths(root), warn);
  const covered = openCatalogue(root, exchange, request.signal).states(selected, {
    rangesOf: (series) => [
      { ...(isHeld.has(seriesName(series)) ? {} : ordered.get(seriesName(series))?.days), ...range },
    ],
    orderedOf: (series) => ordered.get(seriesName(series))?.formats,
    formats: isFormatGiven ? [options.format] : undefined,
    nowMs,
    failures: failures?.bySeries,
    onRefused: (error) => found.refused.push(error),
  });
  return {
    // Can be read once.
    covered: tapped(covered, (series) => found.add(series, options.minPercent)),
    // The counts of the series that were read so far.
    found,
    failures,
    by,
    // The period of the amounts of a series. For `auto`, it depends on the length of the range.
    periodOf: ({ from, to }: SeriesStates): CoveragePeriod =>
      by ?? (to - (range.from ?? from) <= MOST_DAYS ? 'day' : 'month'),
  };
}

/** The series of the lake with those that its orders name and that it lacks, in path order, and the ordered ones by name. */
async function withOrdered(root: string, exchange: Exchange, held: readonly Series[], nowMs: number) {
  const names = new Set(held.map(seriesName));
  // The days are those of all orders. An order without a first day asks at least for the last day.
  const ordered = new Map<string, { series: Series; formats: OrderedFormats; days: DayRange }>();
  for (const order of (await readOrders(lakePaths(root))).orders) {
    if (order.exchange !== exchange.name) continue;
    const ofAll = orderedDays(order, exchange, nowMs);
    for (const series of seriesOfOrder(order)) {
      const name = seriesName(series);
      const range = daysOfSymbol(order, ofAll, series.symbol);
      const days = { from: range.to - 1, ...range };
      const { format } = order.settings;
      const before = ordered.get(name);
      const ofFormat = unionOf(before?.formats[format] ?? range, range);
      ordered.set(name, {
        series,
        formats: { ...before?.formats, [format]: ofFormat },
        days: { ...days, ...unionOf(before?.days ?? days, days) },
      });
    }
  }
  // The lake has a series behind a link, which is not followed.
  const isLink = (series: Series): boolean =>
    firstSymlink(root, seriesFolder(exchange.name, series)) !== undefined;
  const lacked = [...ordered].filter(([name, { series }]) => !names.has(name) && !isLink(series));
  const all = [...held, ...lacked.map(([, { series }]) => series)];
  const byFolder = new Map(all.map((series) => [seriesFolder(exchange.name, series), series]));
  return { known: [...byFolder].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, series]) => series), ordered };
}

function unionOf(a: OrderedDays, b: OrderedDays): OrderedDays {
  const { from: _, ...days } = { ...a, ...b, to: Math.max(a.to, b.to) };
  return a.from === undefined || b.from === undefined ? days : { ...days, from: Math.min(a.from, b.from) };
}
