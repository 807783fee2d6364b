/** The committed files of a series, or the reason why it cannot be exported. */
import { listText } from '../model/units.js';
import { CryptodlError } from '../model/errors.js';
import type { Series } from '../model/task.js';
import { fetchAgainText } from '../query/file-digests.js';
import { readSeriesFiles } from '../query/lake-tables.js';
import { findDataset } from '../source/venue.js';
import type { Source } from '../source/source.js';
import { shownPath } from '../text/printable.js';
import type { HeldData, Refused } from './export-file.js';

/** A series with a file that cannot be read is not exported, because its rows would have a hole that nothing shows. */
export async function readSeries(root: string, venue: Source, series: Series): Promise<HeldData | Refused> {
  const refused = (reason: string): Refused => ({ series, reason, isFault: true });
  const spec = findDataset(venue, series.market, series.dataset);
  if (spec === undefined) return refused('this version of cryptodl does not know the dataset');
  try {
    const { files, unsound, overlapping } = await readSeriesFiles(root, venue, series);
    if (unsound.length > 0)
      return refused(`${listText(unsound.map(shownPath), 1)} is missing or damaged; ${fetchAgainText(root)}`);
    const [both] = overlapping;
    if (both !== undefined)
      return refused(
        `${shownPath(both)} has some days that Parquet files have too; keep one format of the series`,
      );
    return files.length === 0
      ? refused('the lake has no Parquet or CSV files of it')
      : { series, spec, files };
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
    return refused(error.message);
  }
}
