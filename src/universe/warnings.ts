/** Texts about data of the lake that a universe lacks or cannot read. */
import { dayText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { countText, listText } from '../model/units.js';
import { fetchAgainText } from '../query/file-digests.js';
import { commandLine, lakeFlag, shownPath } from '../text/printable.js';
import type { FoundFiles } from './choose-files.js';
import { DATASET } from './choose-symbols.js';
import { LARGEST } from './daily-sums.js';
import type { RowFaults } from './daily-sums.js';
import type { Incomplete, Ranking } from './rank.js';

const FEW = 5;

interface Place {
  /** Absolute. */
  readonly root: string;
  readonly market: string;
}

/** Throws a usage error if no file of the klines can be read. `out`: the lake as the user named it. */
export function refuseUnreadable(
  { bySymbol, unread }: FoundFiles,
  { root, out, market }: Place & { readonly out: string },
): void {
  if ([...bySymbol.values()].flat().some(({ files }) => files.length > 0)) return;
  const what = `${out} has no file of ${market} ${DATASET} that universe can read`;
  const [first] = unread;
  if (first !== undefined) throw usage(`${what}: ${first.text}`, fetchAgainText(root));
  throw usage(
    `${what}: it reads Parquet and CSV files, and no zips`,
    `add --fetch, or download them as Parquet: cryptodl vision --market ${market} --dataset ${DATASET} --interval 1d --symbols all --from 2023-01 --format parquet${lakeFlag(root)}`,
  );
}

/** One text for all files and manifests that are not read. */
export function unreadWarnings({ unread }: FoundFiles, root: string): string[] {
  if (unread.length === 0) return [];
  const texts = unread.map(({ text }) => text);
  return [`not read: ${listText(texts)}; ${fetchAgainText(root, 'the objects of damaged files')}`];
}

/** One text for numbers that count as 0, and one for candles with several rows. */
export function rowWarnings({ numbers, repeated }: RowFaults, by: string): string[] {
  const texts: string[] = [];
  const places = numbers.map(({ symbol, day }) => `${symbol} on ${dayText(day)}`);
  if (numbers.length > 0)
    texts.push(
      `${countText(numbers.length, 'symbol')} with a ${by} that is no number below ${LARGEST} and counts as 0, so the rank is wrong: ${listText(places)}; --symbols can leave symbols out`,
    );
  if (repeated.length > 0)
    texts.push(
      `${countText(repeated.length, 'symbol')} with several rows of one candle, of which the first one counts: ${listText(repeated)}`,
    );
  return texts;
}

/** One text for each kind of missing data. */
export function incompleteWarnings(
  { lacking, emptyDays, early, withoutMembers }: Incomplete,
  { window, minAge, marketDays }: Ranking,
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
      `the ${what} of the lake begin ${dayText(marketDays[0] ?? 0)}, less than ${countText(Math.max(window, minAge), 'day')} before ${countText(early.length, 'period')}: ${listText(early.map(dayText))}`,
    );
  if (withoutMembers.length > 0)
    texts.push(
      `${countText(withoutMembers.length, 'period')} without a member: ${listText(withoutMembers.map(dayText))}`,
    );
  return texts;
}

function coverageLine(symbols: readonly string[], { root, market }: Place): string {
  const shown = shownPath(root);
  const some = symbols.slice(0, FEW).join(',');
  const flags = ['--market', market, '--dataset', DATASET, '--symbols', some];
  return commandLine(['coverage', ...flags, ...(shown === 'data' ? [] : ['--out', shown])]);
}
