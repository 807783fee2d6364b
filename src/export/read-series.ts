/** The committed files of a series, or the reason why it cannot be exported. */
import { CryptodlError } from '../model/errors.js';
import type { Series } from '../model/task.js';
import { faultOfSeries } from '../catalogue/file-digests.js';
import { readSeriesFiles } from '../catalogue/lake-tables.js';
import { findDataset } from '../source/venue.js';
import type { Source } from '../source/source.js';
import type { HeldData, Refused } from './export-file.js';

/** A series with a file that cannot be read is not exported, because its rows would have a hole that nothing shows. */
export async function readSeries(root: string, venue: Source, series: Series): Promise<HeldData | Refused> {
  const refused = (reason: string): Refused => ({ series, reason, isFault: true });
  const spec = findDataset(venue, series.market, series.dataset);
  if (spec === undefined) return refused('this version of cryptodl does not know the dataset');
  try {
    const read = await readSeriesFiles(root, venue, series);
    const fault = faultOfSeries(root, read);
    if (fault !== undefined) return refused(fault);
    const { files } = read;
    return files.length === 0
      ? refused('the lake has no Parquet or CSV files of it')
      : { series, spec, files };
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
    return refused(error.message);
  }
}
