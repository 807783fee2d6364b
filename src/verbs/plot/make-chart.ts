/** Makes the chart of a series of the lake. */
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import type { Gap } from '../../lake/catalogue/gap.js';
import { dayOf, startOfDay } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import type { QueryFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { readVerbLake, readableStates } from '../../plan/select/held-series.js';
import { listText } from '../../model/units.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import { lakeFlag, shellWord } from '../../text/printable.js';
import { makeChart } from './chart.js';
import type { Chart } from './chart.js';
import { chooseDataset, seriesOfSymbol } from './choose-series.js';
import type { ChosenDataset } from './choose-series.js';
import { readBars } from './read-bars.js';
import { timeGrid } from './time-grid.js';
import type { TimeRange } from './time-grid.js';
import { gapText } from '../../lake/catalogue/series-table.js';

export type Flag = QueryFlag | 'column' | 'quiet';

/** A chart of fewer bars looks empty if a shorter interval has more. */
const ENOUGH_BARS = 100;

/**
 * Of several intervals, those with the newest rows; of these, the longest that fills a chart, because it has the fewest rows to
 * read. Throws a usage error if no interval has rows in the given range.
 */
function chooseInterval(
  found: Iterable<SeriesStates>,
  { exchange, resolved, clock }: VerbRequest<Flag>,
  { series: [one], spec }: ChosenDataset,
): { readonly states: SeriesStates; readonly range: TimeRange } {
  const { options } = resolved;
  const given = givenRange(options, options.nowMs ?? clock.now(), exchange);
  const first = given?.from === undefined ? -Infinity : startOfDay(given.from, spec);
  const end = given === undefined ? Infinity : startOfDay(given.to, spec);
  const within = [...found].flatMap((states) => {
    // A series of zips has no rows that a query reads.
    if (states.first === undefined || states.last === undefined) return [];
    const range = {
      from: Math.max(Date.parse(states.first), first),
      to: Math.min(Date.parse(states.last) + 1, end),
    };
    return range.from < range.to ? [{ states, range, length: lengthOf(states.series) }] : [];
  });
  const newest = Math.max(...within.map(({ range }) => dayOf(range.to - 1, spec)));
  const ranked = within
    .filter(({ range }) => dayOf(range.to - 1, spec) === newest)
    .sort((a, b) => b.length - a.length);
  const best = ranked.find(({ range: { from, to }, length }) => (to - from) / length >= ENOUGH_BARS);
  const chosen = best ?? ranked.at(-1);
  if (chosen !== undefined) return chosen;
  const inRange = given === undefined ? '' : ` in ${given.text}`;
  throw usage(
    `${options.out} holds no Parquet or CSV rows of ${one?.symbol} ${one?.market} ${one?.dataset}${inRange}`,
    'cryptodl coverage shows what the lake holds',
  );
}

/** The length of an interval in milliseconds. Intervals above a day have no fixed length, and are compared by their usual one. */
function lengthOf({ interval = '1s' }: Series): number {
  const usual: Readonly<Record<string, number>> = { '1w': 7, '1mo': 30, '1M': 30 };
  return (usual[interval] ?? 0) * 86_400_000 || intervalMs(interval) || 1000;
}

/** The chart of the chosen series. `most`: its largest number of steps. */
export async function chartOf(
  operand: string | undefined,
  request: VerbRequest<Flag>,
  most: number,
): Promise<Chart> {
  const { root, held } = await readVerbLake(request);
  const own = await seriesOfSymbol(held, operand, request);
  const chosen = chooseDataset(own, request.resolved, request.exchange);
  const { spec, columns } = chosen;
  // Each interval has gaps of its own. No data file is read.
  const found = await readableStates(root, chosen.series, request);
  const { states, range } = chooseInterval(found.values(), request, chosen);
  const { series, gaps } = states;
  const { interval = '' } = series;
  const grid = timeGrid(range, { most, interval, dayStartMs: spec.dayStartMs });
  const shown = { series, spec, columns, grid, range };
  const bars = await readBars(shown, request);
  const column = columns.kind === 'line' ? ` in ${columns.column.name}` : '';
  if (bars.length === 0) throw usage(`${series.symbol} has no numbers${column} in this range`);
  const notes = request.resolved.options.quiet ? [] : missingLines(states, range, root);
  const breaks = gaps.filter(({ isLoose }) => isLoose !== true).map((gap) => timesOf(gap, states));
  return makeChart({ ...shown, bars, breaks, notes });
}

/** In epoch milliseconds. */
function timesOf({ from, to }: Gap, { dayStartSeconds }: SeriesStates): TimeRange {
  return { from: (from + dayStartSeconds) * 1000, to: (to + dayStartSeconds) * 1000 };
}

/** Lines about missing rows within the range, and the command that fetches them. */
function missingLines(states: SeriesStates, range: TimeRange, root: string): string[] {
  const within = states.gaps.filter((gap) => {
    const { from, to } = timesOf(gap, states);
    return gap.isMissing && from < range.to && to > range.from;
  });
  if (within.length === 0) return [];
  const { market, dataset, interval, symbol } = states.series;
  const ofInterval = interval === undefined ? [] : ['-i', interval];
  const words = ['-m', market, '--dataset', dataset, ...ofInterval, '-s', symbol].map(shellWord);
  const texts = within.map((gap) => gapText(gap, states));
  return [
    `missing: ${listText(texts, 2)}`,
    `to fetch them: cryptodl repair${lakeFlag(root)} ${words.join(' ')}`,
  ];
}
