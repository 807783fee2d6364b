/** The symbols whose bars are made, and their sources: series of klines, aggTrades or trades. */
import type { HeldSeries } from '../../lake/catalogue/catalogue.js';
import { eachDay } from '../../model/calendar.js';
import { grouped } from '../../model/by-name.js';
import { completeDays } from '../../lake/catalogue/lake-file.js';
import { hasTextNumbers, hasZonedTimes } from '../../lake/catalogue/views.js';
import { usage } from '../../model/errors.js';
import type { Series, Settings } from '../../model/task.js';
import { emptyShardText, isInShard } from '../../plan/options/shard.js';
import type { HeldFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { findDataset, intervalMs } from '../../exchange/exchange-spec.js';
import type { BarRule } from './bar-rule.js';

const DATASETS = ['klines', 'aggTrades', 'trades'];
const BARS = 'bars';

export type SymbolSeries = Awaited<ReturnType<typeof selectBarSymbols>>[number];

/** The selected symbols of the lake. Rejects with usage errors for a lake without sources, and for values of flags that it does not have. */
export async function selectBarSymbols(rule: BarRule, request: VerbRequest<HeldFlag | 'shard'>) {
  const { exchange, resolved, observer } = request;
  const { out, shard } = resolved.options;
  const held = (await readVerbLake(request)).held.filter(({ dataset }) => DATASETS.includes(dataset));
  if (held.length === 0)
    throw usage(`${out} holds no klines, aggTrades or trades`, 'name the lake with --out');
  const bySymbol = grouped(await selectGiven(held, request), ({ market, symbol }) => `${market} ${symbol}`);
  const symbols = [...bySymbol.values()].flatMap((selected) => {
    const [{ market, symbol }] = selected;
    const bars = { market, dataset: BARS, interval: rule.interval, symbol };
    const spec = findDataset(exchange, market, BARS);
    return spec === undefined || !isInShard(shard, exchange, bars) ? [] : [{ bars, spec, selected }];
  });
  if (shard !== undefined && symbols.length === 0) observer.warn(emptyShardText(shard));
  return symbols;
}

export function canMake(rule: BarRule, { market, dataset, interval }: Series): boolean {
  if (dataset === 'klines') {
    const lengthMs = intervalMs(interval ?? '');
    // Klines of a day divide a week, but klines of three days begin at multiples of their own.
    return lengthMs < rule.lengthMs && rule.lengthMs % lengthMs === 0 && rule.originMs % lengthMs === 0;
  }
  // Of cm, aggTrades lack the quantity in the base coin.
  return market !== 'cm' || dataset === 'trades';
}

export const noSourceText = ({ interval }: BarRule, held: readonly Series[]): string =>
  `no source: the lake has ${held.map(sourceName).join(', ')}; a bar of ${interval} needs shorter klines that divide it, aggTrades (not of cm) or trades`;

/** The source as in messages and manifest lines: `klines 1m`. */
export const sourceName = ({ dataset, interval }: Pick<Series, 'dataset' | 'interval'>): string =>
  interval === undefined ? dataset : `${dataset} ${interval}`;

export type BarSource = Readonly<ReturnType<typeof sourceOf>[number]>;

/** Nothing for a series without days, unless it has a fault. */
export function sourceOf({ series, spec, files, fault }: HeldSeries) {
  const days = files.flatMap(completeDays);
  if (spec === undefined || (days.length === 0 && fault === undefined)) return [];
  // Whether all numbers are text with every digit.
  const isText = hasTextNumbers(files);
  // Of files of bars from this source.
  const settings: Settings = {
    format: 'parquet',
    partition: 'month',
    cadence: 'daily',
    numbers: isText ? 'string' : 'double',
    timestamps: hasZonedTimes(files) ? 'utc' : 'us',
    asPublished: false,
  };
  // The first held day, and the day after the last one.
  const [from, to] = [days[0] ?? 0, (days.at(-1) ?? -1) + 1];
  return [{ series, spec, files, fault, days: new Set(days), from, to, isText, settings }];
}

/** The days between the first and the last one that the source does not have. */
export const missingDays = ({ from, to, days }: BarSource): number[] =>
  eachDay({ from, to }).filter((day) => !days.has(day));

/** The klines with the most days; of equal ones, those of the longest interval, which have the fewest rows. Else aggTrades, then trades. */
export function chooseSource(usable: readonly BarSource[]): BarSource | undefined {
  const [best] = usable.toSorted(
    ({ series: a, days: ofA }, { series: b, days: ofB }) =>
      DATASETS.indexOf(a.dataset) - DATASETS.indexOf(b.dataset) ||
      ofB.size - ofA.size ||
      intervalMs(b.interval ?? '') - intervalMs(a.interval ?? ''),
  );
  return best;
}
