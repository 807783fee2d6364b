/** Texts and errors about klines of the lake that a universe cannot read. */
import { lineText } from '../cli/corrected-line.js';
import { dayText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import { countText } from '../model/units.js';
import { lakeFlag } from '../text/printable.js';
import { LARGEST } from './daily-sums.js';
import type { UnreadNumber } from './daily-sums.js';
import { DATASET } from './choose-symbols.js';
import type { FoundFiles } from './choose-files.js';
import { few } from './warn-incomplete.js';

interface Place {
  /** Absolute. */
  readonly root: string;
  readonly out: string;
  readonly market: string;
}

/** One text for each damaged manifest and for each kind of files that are not read. */
export function unreadTexts({ damaged, leftOut }: FoundFiles, { root }: Pick<Place, 'root'>): string[] {
  const texts = damaged.map(
    ({ series, error }) =>
      `${seriesName(series)} is not read, because its manifest is damaged: ${error.message}${error.hint === undefined ? '' : `; ${error.hint}`}`,
  );
  const { unsound, overlapping } = leftOut;
  if (unsound.length > 0)
    texts.push(`${unsoundText(unsound.length)}; ${lineText(['verify'])}${lakeFlag(root)} names them`);
  if (overlapping.length > 0)
    texts.push(
      `${countText(overlapping.length, 'CSV file')} not read, because Parquet files of the lake have some of the same days`,
    );
  return texts;
}

function unsoundText(count: number): string {
  return `${countText(count, 'file')} not read, because ${count === 1 ? 'it is' : 'they are'} missing or changed since the download`;
}

/** Throws a usage error if no file of the klines can be read. */
export function refuseUnreadable(
  { files, damaged, leftOut: { unsound } }: FoundFiles,
  { root, out, market }: Place,
): void {
  if (files.length > 0) return;
  const what = `${out} has no file of ${market} ${DATASET} that universe can read`;
  if (unsound.length > 0)
    throw usage(
      `${what}: ${unsoundText(unsound.length)}`,
      `cryptodl repair${lakeFlag(root)} fetches them again`,
    );
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

/** The text about numbers that count as 0; undefined without one. */
export function numbersText(numbers: readonly UnreadNumber[], by: string): string | undefined {
  if (numbers.length === 0) return undefined;
  const places = numbers.map(({ symbol, day }) => `${symbol} on ${dayText(day)}`);
  return `${countText(numbers.length, 'symbol')} with a ${by} that is no number below ${LARGEST} and counts as 0, so the rank is wrong: ${few(places)}; --symbols can leave symbols out`;
}
