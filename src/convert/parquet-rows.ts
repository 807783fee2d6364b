/** The row count of a Parquet file, without DuckDB: a query for it takes ten times as long as reading the end of the file. */
import { constants } from 'node:fs';
import { parquetMetadataAsync } from 'hyparquet/src/metadata.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { openRegularFile } from '../lake/path-checks.js';

/** Longer than the footer of nearly every file; of a longer one, the rest is read too. */
const FOOTER_BYTES = 64 * 1024;

/** Rejects with `disk` for a file that is not Parquet or is truncated, and for anything but a regular file. */
export async function countParquetRows(path: string): Promise<number> {
  const file = await openRegularFile(path, constants.O_RDONLY);
  try {
    const { size } = await file.stat();
    const slice = async (from: number, to = size): Promise<ArrayBuffer> => {
      const bytes = new Uint8Array(to - from);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
      return bytes.buffer.slice(0, bytesRead);
    };
    const { num_rows: rows } = await parquetMetadataAsync(
      { byteLength: size, slice },
      { initialFetchSize: FOOTER_BYTES, geoparquet: false },
    );
    return Number(rows);
  } catch (error) {
    // Errors of the parser are plain ones, and errors of the disk have a code.
    if (error instanceof CryptodlError || errnoOf(error) !== 'unknown error') throw error;
    throw new CryptodlError('disk', `${path} is not a complete Parquet file: ${(error as Error).message}`);
  } finally {
    await file.close();
  }
}
