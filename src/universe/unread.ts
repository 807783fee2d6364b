/** Texts and errors about klines of the lake that a universe cannot read. */
import { dayText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import { countText, listText } from '../model/units.js';
import { fetchAgainText } from '../query/file-digests.js';
import { lakeFlag, shownPath } from '../text/printable.js';
import { LARGEST } from './daily-sums.js';
import type { RowFaults } from './daily-sums.js';
import { DATASET } from './choose-symbols.js';
import type { FoundFiles, UnreadableFile } from './choose-files.js';

interface Place {
  /** Absolute. */
  readonly root: string;
  readonly out: string;
  readonly market: string;
}

/** One text for each damaged manifest and for each kind of files that are not read. */
export function unreadTexts(
  { damaged, leftOut, unreadable }: FoundFiles,
  { root }: Pick<Place, 'root'>,
): string[] {
  const texts = damaged.map(
    ({ series, error }) =>
      `${seriesName(series)} is not read, because its manifest is damaged: ${error.message}${error.hint === undefined ? '' : `; ${error.hint}`}`,
  );
  const { unsound, overlapping } = leftOut;
  if (unsound.length > 0)
    texts.push(
      `${unsoundText(unsound.length)}: ${listText(unsound.map(shownPath))}; ${fetchAgainText(root, objectsOf(unsound.length))}`,
    );
  texts.push(...unreadable.map((file) => `${readingText(file)}; ${fetchAgainText(root)}`));
  if (overlapping.length > 0)
    texts.push(
      `${countText(overlapping.length, 'CSV file')} not read, because Parquet files of the lake have some of the same days`,
    );
  return texts;
}

function unsoundText(count: number): string {
  return `${countText(count, 'file')} not read, because ${count === 1 ? 'it is' : 'they are'} missing or changed since the download`;
}

function readingText({ path, reason }: UnreadableFile): string {
  return `${shownPath(path)} cannot be read (${reason})`;
}

function objectsOf(count: number): string {
  return count === 1 ? 'its objects' : 'their objects';
}

/** Throws a usage error if no file of the klines can be read. */
export function refuseUnreadable(found: FoundFiles, { root, out, market }: Place): void {
  const {
    bySymbol,
    damaged,
    unreadable,
    leftOut: { unsound },
  } = found;
  if ([...bySymbol.values()].flat().some(({ files }) => files.length > 0)) return;
  const what = `${out} has no file of ${market} ${DATASET} that universe can read`;
  if (unsound.length > 0)
    throw usage(`${what}: ${unsoundText(unsound.length)}`, fetchAgainText(root, objectsOf(unsound.length)));
  if (unreadable.length > 0)
    throw usage(`${what}: ${unreadable.map(readingText).slice(0, 1).join('')}`, fetchAgainText(root));
  if (damaged.length > 0)
    throw usage(
      `${what}: ${countText(damaged.length, 'manifest')} damaged`,
      `cryptodl verify --fix${lakeFlag(root)}, and then cryptodl repair${lakeFlag(root)}`,
    );
  throw usage(
    `${what}: it reads Parquet and CSV files, and no zips`,
    `add --fetch, or download them as Parquet: cryptodl vision --market ${market} --dataset ${DATASET} --interval 1d --symbols all --from 2023-01 --format parquet${lakeFlag(root)}`,
  );
}

/** One text for numbers that count as 0, and one for candles with several rows. */
export function rowTexts({ numbers, repeated }: RowFaults, by: string): string[] {
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
