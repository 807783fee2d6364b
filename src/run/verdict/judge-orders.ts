/** Judges the orders of a lake: compares what was asked for, up to the last day that must be published by now, with what the lake holds. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { DAY_SECONDS } from '../../model/units.js';
import { type Gap } from '../../lake/catalogue/gap.js';
import type { Amounts, SeriesStates } from '../../lake/catalogue/day-states.js';
import { DoubtSums } from '../../lake/catalogue/doubts.js';
import { percentOf, unitOf } from '../../lake/catalogue/series-table.js';
import { ExcusedAmounts } from '../../lake/catalogue/gap-texts.js';
import { lakePaths } from '../../lake/layout.js';
import { isOrderedBy, type Order } from '../../lake/order.js';
import type { CryptodlError } from '../../model/errors.js';
import { seriesName, type Series } from '../../model/task.js';
import { nowMsOf, type VerbRequest } from '../../plan/options/verb-request.js';
import { readVerbLake } from '../../plan/select/held-series.js';
import { readLastFailures } from '../failures/last-failures.js';
import { daysOfSymbol, orderedDays, type OrderedDays } from '../../lake/catalogue/ordered-series.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { printable } from '../../text/printable.js';
import { mendsOf, mendSources, type Mend, type MendSources } from './mends.js';

export type JudgedOrder = Readonly<ReturnType<typeof summed>>;

/** Judges by the series that the lake holds, and by its last failure report. */
export async function judgeOrders(
  request: VerbRequest<'out' | 'now'>,
  orders: readonly Order[],
  onRefused: (error: CryptodlError) => void,
): Promise<readonly JudgedOrder[]> {
  const { exchange, signal, observer } = request;
  const nowMs = nowMsOf(request);
  const judged = orders.map((order) => {
    const range = orderedDays(order, exchange, nowMs);
    return { order, range, isOwn: isOrderedBy(order), states: new Map<string, SeriesStates>() };
  });
  type Judged = (typeof judged)[number];
  const ofSeries = (series: Series): Judged[] => judged.filter(({ isOwn }) => isOwn(series));
  // Each range is an object of its own, by which the states find their order.
  const owners = new Map<Partial<DayRange>, Judged>();
  const rangeOf = (one: Judged, symbol: string): OrderedDays => {
    const range = { ...daysOfSymbol(one.order, one.range, symbol) };
    owners.set(range, one);
    return range;
  };
  const { root, held } = await readVerbLake(request);
  const failures = await readLastFailures(lakePaths(root), observer.warn.bind(observer));
  const ordered = held.filter((series) => ofSeries(series).length > 0);
  const states = openCatalogue(root, exchange, signal).states(ordered, {
    rangesOf: (series) => ofSeries(series).map((one) => rangeOf(one, series.symbol)),
    orderedOf: (series) =>
      Object.fromEntries(
        ofSeries(series).map(({ order, range }) => [
          order.settings.format,
          daysOfSymbol(order, range, series.symbol),
        ]),
      ),
    nowMs,
    failures: failures?.bySeries,
    onRefused,
  });
  for await (const one of states) {
    const own = owners.get(one.range);
    if (one.format === undefined || one.format === own?.order.settings.format)
      own?.states.set(one.series.symbol, one);
  }
  const sourcesOf = ({ settings, ...layer }: Order): MendSources =>
    mendSources({ ...layer, ...settings }, exchange, nowMs);
  return judged.map((one) => summed(one.order, one.range, one.states, sourcesOf(one.order)));
}

function summed(
  order: Order,
  range: OrderedDays,
  states: ReadonlyMap<string, SeriesStates>,
  sources: MendSources,
) {
  const all = order.symbols.map((symbol) => {
    const one = states.get(symbol);
    const amounts: Amounts = one ?? emptyAmounts(daysOfSymbol(order, range, symbol));
    return {
      ...amounts,
      unit: unitOf(one ?? { rowSeconds: undefined }),
      gaps: one?.gaps.filter(({ isMissing }) => isMissing),
    };
  });
  const percents = all.flatMap((one) => percentOf(one) ?? []);
  const lacking = all.filter(({ missing }) => missing > 0);
  const missingIn = (unit: 'rows' | 'days'): number =>
    lacking.filter((one) => one.unit === unit).reduce((sum, { missing }) => sum + missing, 0);
  const late = lacking.map(({ gaps = [] }) => (order.last === null ? lateDays(gaps, range.to) : 0));
  const [excused, doubts] = [new ExcusedAmounts(), new DoubtSums()];
  for (const one of states.values()) {
    for (const gap of one.gaps) if (!gap.isMissing) excused.add(one, gap);
    doubts.add(printable(seriesName(one.series)), one.doubts);
  }
  const mends = new Set<Mend>(
    lacking.flatMap(({ gaps }) => gaps?.flatMap((gap) => mendsOf(gap, sources)) ?? ['run']),
  );
  return {
    order,
    /** The day after the last one that must be published by now. */
    to: range.to,
    series: order.symbols.length,
    lacking: lacking.length,
    /** Missing rows, and missing days of datasets whose number of rows is not known. */
    rows: missingIn('rows'),
    days: missingIn('days'),
    /** The held share of all series in percent, each series with the same weight; undefined if nothing is expected. */
    percent: percents.length === 0 ? undefined : percents.reduce((a, b) => a + b, 0) / percents.length,
    /** The number of days at the end that series lack, if they lack nothing else; else 0. */
    behind: late.includes(0) ? 0 : Math.max(0, ...late),
    mends,
    excused,
    doubts,
  };
}

/** The number of days at the end that a series lacks; 0 if it lacks something else. */
function lateDays([gap, other]: readonly Gap[], end: number): number {
  const isLate = other === undefined && gap?.reason === 'not-fetched' && gap.toSeconds >= end * DAY_SECONDS;
  return isLate ? Math.ceil((gap.toSeconds - gap.fromSeconds) / DAY_SECONDS) : 0;
}

/** A symbol that the lake lacks has 0 %, once a day of the order must be published. */
function emptyAmounts({ from, to }: OrderedDays): Amounts {
  const expected = to - (from ?? to - 1);
  return { expected, missing: expected };
}
