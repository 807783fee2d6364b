/** The symbols of the lake whose bars are made, with the series that can be their source. */
import { monthOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Series } from '../model/task.js';
import { emptyShardText, isInShard } from '../options/shard.js';
import type { Resolved } from '../options/resolve.js';
import type { VerbRequest } from '../options/verb-request.js';
import { isRangeGiven, resolveRange } from '../select/date-range.js';
import { readVerbLake, selectGiven } from '../select/held-series.js';
import { findDataset } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { BarRule } from './bar-rule.js';
import { canMake, isSource, sourceName } from './source.js';

export interface SymbolSeries {
  /** The series of the bars. */
  readonly bars: Series;
  readonly spec: DatasetSpec;
  readonly sources: readonly Series[];
  /** Why no series can be the source. */
  readonly problem?: string;
}

/** The dataset of bars. */
const BARS = 'bars';

/** Rejects with usage errors for a lake without sources, and for values of flags that the lake does not have. */
export async function selectSymbols(rule: BarRule, request: VerbRequest): Promise<SymbolSeries[]> {
  const { source: venue, resolved, observer } = request;
  const { options } = resolved;
  if (options.fillEmpty && rule.kind !== 'time')
    throw usage(`--fill-empty: bars of ${rule.interval} are never empty`, 'leave --fill-empty out');
  const held = (await readVerbLake(request)).held.filter(isSource);
  if (held.length === 0)
    throw usage(`${options.out} holds no klines, aggTrades or trades`, 'name the lake with --out');
  const chosen = await selectGiven(namedSources(rule, held, resolved), request);
  const symbols = new Map<string, Series[]>();
  for (const series of chosen) {
    const name = `${series.market} ${series.symbol}`;
    const own = symbols.get(name);
    if (own === undefined) symbols.set(name, [series]);
    else own.push(series);
  }
  const all = [...symbols.values()].flatMap((series) => {
    const [first] = series;
    if (first === undefined) return [];
    const bars = { market: first.market, dataset: BARS, interval: rule.interval, symbol: first.symbol };
    const spec = findDataset(venue, bars.market, BARS);
    return spec === undefined ? [] : [{ bars, spec, series }];
  });
  const own = all.filter(({ bars }) => isInShard(options.shard, venue, bars));
  if (options.shard !== undefined && own.length === 0) observer.warn(emptyShardText(options.shard));
  return own.map(({ series, ...of }) => {
    const sources = series.filter((one) => canMake(rule, one));
    if (sources.length > 0) return { ...of, sources };
    return { ...of, sources, problem: problemOf(rule, series) };
  });
}

/** If flags name the source, only series that can be one count. Throws a usage error if the lake has none. */
function namedSources(
  rule: BarRule,
  held: readonly Series[],
  { options, origins }: Resolved,
): readonly Series[] {
  if (origins.dataset === 'default' && origins.interval === 'default') return held;
  const usable = held.filter((one) => canMake(rule, one));
  if (usable.length === 0)
    throw usage(`${options.out} has no source for bars of ${rule.interval}`, needText(rule));
  return usable;
}

function needText(rule: BarRule): string {
  const need =
    rule.kind === 'time'
      ? `shorter klines that divide ${rule.interval}, aggTrades (not of cm) or trades`
      : 'aggTrades (not of cm) or trades (of cm not for dollar bars)';
  return `bars of ${rule.interval} need ${need}`;
}

function problemOf(rule: BarRule, series: readonly Series[]): string {
  return `no source: the lake has ${series.map(sourceName).join(', ')}; ${needText(rule)}`;
}

/** Whether a month has days in the range of the command; true for all months without a range. */
export function chosenMonths({ resolved, clock, source }: VerbRequest): (month: number) => boolean {
  const { options } = resolved;
  if (!isRangeGiven(options)) return () => true;
  const { from, to } = resolveRange(options, options.nowMs ?? clock.now(), source);
  return (month) => (from === undefined || month >= monthOf(from)) && month <= monthOf(to - 1);
}
