/** Texts about data of the lake that a universe lacks. */
import { dayText } from '../model/calendar.js';
import { countText, listText } from '../model/units.js';
import { commandLine, shownPath } from '../text/printable.js';
import { DATASET } from './choose-symbols.js';
import { RELISTED_DAYS } from './held-symbols.js';
import type { Incomplete, Ranking } from './rank.js';

const FEW = 5;

interface Place {
  /** Absolute. */
  readonly root: string;
  readonly market: string;
}

/** One text for each kind of missing data. */
export function incompleteWarnings(
  { lacking, emptyDays, early, withoutMembers, relisted }: Incomplete,
  { window, minAge, firstHeld }: Ranking,
  { root, market }: Place,
): string[] {
  const what = `${market} ${DATASET}`;
  const texts: string[] = [];
  if (lacking.length > 0)
    texts.push(
      `${countText(lacking.length, 'symbol')} ${lacking.length === 1 ? 'lacks' : 'lack'} days of the windows, so the sums are too small, and a symbol without the last day is not a member: ${listText(lacking)}; ${coverageLine(lacking, { root, market })} shows the days`,
    );
  if (emptyDays.length > 0)
    texts.push(
      `the lake has no ${what} of any symbol on ${countText(emptyDays.length, 'day')} of the windows: ${listText(emptyDays.map(dayText))}; a period after such days takes the last day before them`,
    );
  if (early.length > 0)
    texts.push(
      `the ${what} of the lake begin ${dayText(firstHeld)}, less than ${countText(Math.max(window, minAge), 'day')} before ${countText(early.length, 'period')}: ${listText(early.map(dayText))}`,
    );
  if (withoutMembers.length > 0)
    texts.push(
      `${countText(withoutMembers.length, 'period')} without a member: ${listText(withoutMembers.map(dayText))}`,
    );
  if (relisted.length > 0)
    texts.push(
      `${countText(relisted.length, 'symbol')} had no rows for more than ${RELISTED_DAYS} days of the market, so age and sums begin after them: ${listText(relisted)}`,
    );
  return texts;
}

function coverageLine(symbols: readonly string[], { root, market }: Place): string {
  const shown = shownPath(root);
  const some = symbols.slice(0, FEW).join(',');
  const flags = ['--market', market, '--dataset', DATASET, '--symbols', some];
  return commandLine(['coverage', ...flags, ...(shown === 'data' ? [] : ['--out', shown])]);
}
