/** The symbols whose bars are made, and their sources: series of klines, aggTrades or trades. */
import type { HeldSeries } from '../../lake/catalogue/catalogue.js';
import { completeDays } from '../../lake/catalogue/lake-file.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { hasTextNumbers } from '../../lake/catalogue/views.js';
import { hasZonedTimes } from '../../lake/catalogue/view-parts.js';
import { DAY_MS, dayOf, eachDay, monthOf, monthStart, monthText, startOfDay } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { Series, Settings } from '../../model/task.js';
import { emptyShardText, isInShard } from '../../plan/options/shard.js';
import type { HeldFlag, RangeFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { findDataset, intervalMs } from '../../exchange/exchange-spec.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { createHash } from 'node:crypto';
import { basename } from 'node:path';

const DATASETS = ['klines', 'aggTrades', 'trades'];
const BARS = 'bars';

export interface SymbolSeries {
  readonly bars: Series;
  readonly spec: DatasetSpec;
  /** The selected series of the symbol. */
  readonly held: readonly Series[];
}

/** The selected symbols of the lake. Rejects with usage errors for a lake without sources, and for values of flags that it does not have. */
export async function selectBarSymbols(
  rule: BarRule,
  request: VerbRequest<HeldFlag | 'shard'>,
): Promise<SymbolSeries[]> {
  const { exchange, resolved, observer } = request;
  const { out, shard } = resolved.options;
  const held = (await readVerbLake(request)).held.filter(({ dataset }) => DATASETS.includes(dataset));
  if (held.length === 0)
    throw usage(`${out} holds no klines, aggTrades or trades`, 'name the lake with --out');
  const symbols = new Map<string, SymbolSeries>();
  for (const series of await selectGiven(held, request)) {
    const { market, symbol } = series;
    const name = `${market} ${symbol}`;
    const bars = { market, dataset: BARS, interval: rule.interval, symbol };
    const spec = findDataset(exchange, market, BARS);
    if (spec !== undefined && isInShard(shard, exchange, bars))
      symbols.set(name, { bars, spec, held: [...(symbols.get(name)?.held ?? []), series] });
  }
  if (shard !== undefined && symbols.size === 0) observer.warn(emptyShardText(shard));
  return [...symbols.values()];
}

/** Whether a month has days in the range of the command; true for all months without a range. */
export function chosenMonths(request: VerbRequest<RangeFlag | 'now'>): (month: number) => boolean {
  const { exchange, clock } = request;
  const { options } = request.resolved;
  const { from, to } = givenRange(options, options.nowMs ?? clock.now(), exchange) ?? {};
  return (month) =>
    (from === undefined || month >= monthOf(from)) && (to === undefined || month <= monthOf(to - 1));
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

export function noSourceText({ interval }: BarRule, held: readonly Series[]): string {
  return `no source: the lake has ${held.map(sourceName).join(', ')}; a bar of ${interval} needs shorter klines that divide it, aggTrades (not of cm) or trades`;
}

/** The source as in messages and manifest lines: `klines 1m`. */
export function sourceName({ dataset, interval }: Pick<Series, 'dataset' | 'interval'>): string {
  return interval === undefined ? dataset : `${dataset} ${interval}`;
}

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
export function missingDays({ from, to, days }: BarSource): number[] {
  return eachDay({ from, to }).filter((day) => !days.has(day));
}

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

// The months of bars: the days of each file, and what its bars are made from. A bar belongs to the month of its start. A bar is made if its
// whole time lies within the days that the source holds, from the first to the last one.

/** What bars are made of, apart from the rows. */
export interface Recipe {
  readonly rule: BarRule;
  readonly source: BarSource;
  /** Whether there are bars of times without trades. */
  readonly isFilled: boolean;
}

/** A file of bars. */
export type BarMonth = Readonly<NonNullable<ReturnType<typeof planMonth>>>;

/** All months that can have bars, ascending. */
export function planMonths(recipe: Recipe) {
  const first = monthOf(recipe.source.from);
  const months = Array.from({ length: monthOf(recipe.source.to - 1) - first + 1 }, (_, at) => first + at);
  return months.flatMap((month) => planMonth(recipe, month) ?? []);
}

function planMonth(recipe: Recipe, month: number) {
  const { rule, source, isFilled } = recipe;
  const all = { from: monthStart(month), to: monthStart(month + 1) };
  // In epoch milliseconds.
  const starts = startsIn(rule, source, all);
  if (starts.from >= starts.to) return undefined;
  // The days that have bars or lie within a bar.
  const days = eachDay(all).filter((day) => isOfBars(recipe, day));
  const own = daysOf(starts, source);
  const files = source.files.filter((file) => file.days.from < own.to && file.days.to > own.from);
  const [first] = files;
  if (days.length === 0 || first === undefined) return undefined;
  // The file before has the close for empty bars at the start.
  const before = isFilled ? source.files.findLast((file) => file.days.to <= first.days.from) : undefined;
  const from = before === undefined ? files : [before, ...files];
  const label = monthText(month);
  // Months with the same rule, starts and files of the source have the same bars.
  const digested = [ruleText(recipe), starts, from.map(({ path, sha256 }) => [basename(path), sha256])];
  return {
    month,
    label,
    file: `${label}.parquet`,
    days,
    starts,
    // The days whose rows are read, and the files of the source with these days.
    rows: { from: before?.days.from ?? own.from, to: own.to },
    from,
    sha256: createHash('sha256').update(JSON.stringify(digested)).digest('hex'),
  };
}

/** The starts of the whole bars that begin on these days; by default on all days of the source. */
function startsIn(rule: BarRule, { from, to, spec }: BarSource, days: DayRange = { from, to }): DayRange {
  const startOn = (day: number): number => nextStart(rule, startOfDay(day, spec));
  return {
    from: startOn(Math.max(from, days.from)),
    to: Math.min(barStart(rule, startOfDay(to, spec)), startOn(days.to)),
  };
}

/** Whether a day has bars or lies within one. A day without source does only if bars are longer than a day. */
function isOfBars({ rule, source }: Recipe, day: number): boolean {
  const { spec, days } = source;
  const [begin, end] = [startOfDay(day, spec), startOfDay(day + 1, spec)];
  const whole = startsIn(rule, source);
  if (end <= whole.from || begin >= whole.to) return false;
  if (days.has(day)) return true;
  const hasRows = (from: number): boolean =>
    eachDay(daysOf({ from, to: from + rule.lengthMs }, source)).some((at) => days.has(at));
  return rule.lengthMs > DAY_MS && [begin, end - 1].some((at) => hasRows(barStart(rule, at)));
}

function daysOf({ from, to }: DayRange, { spec }: BarSource): DayRange {
  return { from: dayOf(from, spec), to: dayOf(to - 1, spec) + 1 };
}

/** The rule as text: bars with the same rule and the same files are the same bars. */
export function ruleText({ rule, source, isFilled }: Recipe): string {
  const { numbers, timestamps } = source.settings;
  const zone = timestamps === 'utc' ? ', timestamps utc' : '';
  return `bars ${rule.interval}, from ${sourceName(source.series)}, numbers ${numbers}${zone}${isFilled ? ', filled' : ''}`;
}

/** Bars of equal length, aligned to multiples since 1970-01-01 UTC; weeks begin on a Monday. */
export interface BarRule {
  readonly lengthMs: number;
  /** A start of a bar, in epoch milliseconds. */
  readonly originMs: number;
  /** As in the path of the series: `15m`. */
  readonly interval: string;
}

const UNITS: Readonly<Record<string, number>> = { w: 7 * DAY_MS, d: DAY_MS, h: 3_600_000, m: 60_000 };
/** Monday 1970-01-05. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
/** Each month has the start of a bar of this length, so each month with bars has a file. */
const LONGEST_MS = 28 * DAY_MS;

/** Throws a usage error for a text that is no length. In the largest unit: 60m are 1h. Seven days are no week, because weeks begin on a Monday. */
export function parseBar(text: string): BarRule {
  const [, number = '', unit = ''] = /^(\d{1,7})([mhdw])$/.exec(text) ?? [];
  const lengthMs = Number(number) * (UNITS[unit] ?? 0);
  const units = unit === 'w' ? ['w'] : ['d', 'h', 'm'];
  const largest = units.find((one) => lengthMs % (UNITS[one] ?? 1) === 0);
  if (lengthMs === 0 || lengthMs > LONGEST_MS || largest === undefined)
    throw usage(
      `bars: "${text}" is no bar`,
      'a bar is a number with m, h, d or w up to 28d (15m, 7m, 2h, 3d, 1w)',
    );
  const interval = `${lengthMs / (UNITS[largest] ?? 1)}${largest}`;
  return { lengthMs, originMs: unit === 'w' ? FIRST_MONDAY_MS : 0, interval };
}

/** The start of the bar that has this time, in epoch milliseconds. */
export function barStart({ lengthMs, originMs }: BarRule, atMs: number): number {
  return Math.floor((atMs - originMs) / lengthMs) * lengthMs + originMs;
}

/** The first start of a bar at or after this time. */
export function nextStart(rule: BarRule, atMs: number): number {
  return barStart(rule, atMs + rule.lengthMs - 1);
}
