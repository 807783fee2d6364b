/** Chooses the interval of a plot, and the range of its rows. */
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { dayOf, startOfDay } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import type { QueryFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import type { ChosenDataset } from './choose-series.js';
import type { TimeRange } from './time-grid.js';

/** A chart of fewer bars looks empty if a shorter interval has more. */
const ENOUGH_BARS = 100;

/**
 * Of several intervals, those with the newest rows; of these, the longest that fills a chart, because it has the fewest rows to
 * read. Throws a usage error if no interval has rows in the given range.
 */
export function chooseInterval(
  found: Iterable<SeriesStates>,
  { exchange, resolved, clock }: VerbRequest<QueryFlag>,
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
