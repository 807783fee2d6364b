/** Why a file of an export is not written, from the error of writing it. */
import { isFileError } from '../convert/duckdb-errors.js';
import { CryptodlError } from '../model/errors.js';
import { DamagedFile, fetchAgainText, UnreadableFile } from '../query/file-digests.js';
import type { Source } from '../source/source.js';
import { lakeFlag } from '../text/printable.js';
import type { ExportFile } from './export-file.js';
import { readSeries } from './read-series.js';
import { changed } from './write-file.js';

export interface WriteFault {
  /** `unreadable`: a file of the lake is damaged. `failed`: files of the lake changed during the export. */
  readonly outcome: 'unreadable' | 'failed';
  readonly text: string;
}

/** Undefined for an error that ends the export. */
export async function writeFault(
  error: unknown,
  { sources }: ExportFile,
  { root, venue }: { readonly root: string; readonly venue: Source },
): Promise<WriteFault | undefined> {
  if (error instanceof DamagedFile && !(await isReplaced(error, sources, { root, venue })))
    return { outcome: 'unreadable', text: `${error.message}; ${fetchAgainText(root)}` };
  const cause = error instanceof DamagedFile ? changed(sources[0]) : error;
  if (cause instanceof CryptodlError && cause.code === 'partition-incomplete')
    return { outcome: 'failed', text: `${cause.message}; ${cause.hint ?? ''}` };
  if (cause instanceof UnreadableFile) return { outcome: 'unreadable', text: cause.message };
  if (cause instanceof CryptodlError || !isFileError(cause)) return undefined;
  const [reason = ''] = cause instanceof Error ? cause.message.split('\n') : [];
  return {
    outcome: 'unreadable',
    text: `${reason}; cryptodl verify --deep${lakeFlag(root)} finds damaged files`,
  };
}

/** Whether a run has committed other content of the file since its manifest was read. */
async function isReplaced(
  { file }: DamagedFile,
  sources: ExportFile['sources'],
  { root, venue }: { readonly root: string; readonly venue: Source },
): Promise<boolean> {
  for (const { series } of sources) {
    const read = await readSeries(root, venue, series);
    if (!('files' in read)) continue;
    if (read.files.some(({ path, sha256 }) => path === file.path && sha256 !== file.sha256)) return true;
  }
  return false;
}
