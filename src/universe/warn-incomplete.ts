/** Texts about missing data in the windows of a universe. */
import { dayText, nextCalendarStart } from '../model/calendar.js';
import type { CalendarPeriod } from '../model/calendar.js';
import { countText, listText } from '../model/units.js';
import { commandLine, shownPath } from '../text/printable.js';
import { DATASET } from './choose-symbols.js';
import type { Incomplete, Ranking } from './rank.js';

const FEW = 5;

export interface Place {
  /** Absolute. */
  readonly root: string;
  readonly market: string;
}

/** One text for each kind of missing data. */
export function incompleteTexts(
  { holes, notMembers, emptyDays, shortWindows, earlierDays, withoutMembers }: Incomplete,
  { window, minAge, starts, marketDays }: Ranking,
  { root, market }: Place,
): string[] {
  const what = `${market} ${DATASET}`;
  const texts: string[] = [];
  const [firstHeld = 0] = marketDays;
  if (holes.length > 0)
    texts.push(
      `${countText(holes.length, 'symbol')} ${holes.length === 1 ? 'lacks' : 'lack'} days in a window, so the sums are too small and the ranks may be too low: ${listText(holes)}; ${coverageLine(holes, { root, market })} shows the days`,
    );
  if (notMembers.length > 0) {
    const symbols = [...new Set(notMembers.map(({ symbol }) => symbol))];
    const facts = notMembers.map(
      ({ symbol, start, day }) =>
        `${symbol} is not a member of ${dayText(start)}, because the lake lacks ${dayText(day)}`,
    );
    texts.push(
      `${countText(symbols.length, 'symbol')} with later days in the lake left out of a period: ${listText(facts)}; ${coverageLine(symbols, { root, market })} shows the days`,
    );
  }
  if (emptyDays.length > 0)
    texts.push(
      `the lake has no ${what} of any symbol on ${countText(emptyDays.length, 'day')} of the windows: ${listText(emptyDays.map(dayText))}`,
    );
  for (const { start, day } of earlierDays.slice(0, FEW))
    texts.push(
      `the lake has no ${what} of any symbol on ${dayText(start - 1)}; for the period ${dayText(start)}, a symbol counts as traded if it has rows on ${dayText(day)}`,
    );
  if (shortWindows.length > 0)
    texts.push(
      `the ${what} of the lake begin ${dayText(firstHeld)}, so ${countText(shortWindows.length, 'period')} ${shortWindows.length === 1 ? 'has' : 'have'} a window of less than ${countText(window, 'day')}: ${listText(shortWindows.map(dayText))}`,
    );
  const [first = 0] = starts;
  if (minAge > 0 && first - minAge < firstHeld)
    texts.push(
      `the ${what} of the lake begin ${dayText(firstHeld)}, so no symbol is ${countText(minAge, 'day')} old before ${dayText(firstHeld + minAge)}`,
    );
  if (withoutMembers.length > 0)
    texts.push(
      `${countText(withoutMembers.length, 'period')} without a member: ${listText(withoutMembers.map(dayText))}`,
    );
  return texts;
}

/** The text about periods of --to that are not ranked; undefined if all are. `to`: the day of --to. */
export function laterPeriodsText(
  to: number | undefined,
  { starts, marketDays }: Pick<Ranking, 'starts' | 'marketDays'>,
  { every, what }: { readonly every: CalendarPeriod; readonly what: string },
): string | undefined {
  const [last, held] = [starts.at(-1), marketDays.at(-1)];
  if (to === undefined || last === undefined || held === undefined) return undefined;
  const next = nextCalendarStart(last, every);
  if (next > to) return undefined;
  return `the last period is ${dayText(last)}, and not that of --to: ${what} ends ${dayText(held)}, and the period ${dayText(next)} needs ${dayText(next - 1)}`;
}

function coverageLine(symbols: readonly string[], { root, market }: Place): string {
  const shown = shownPath(root);
  return commandLine([
    'coverage',
    '--market',
    market,
    '--dataset',
    DATASET,
    '--symbols',
    symbols.slice(0, FEW).join(','),
    ...(shown === 'data' ? [] : ['--out', shown]),
  ]);
}
