/** The footer of a Parquet file, without DuckDB: a query for it takes ten times as long as reading the end of the file. */
import { constants } from 'node:fs';
import { parquetMetadataAsync } from 'hyparquet/src/metadata.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { openRegularFile } from '../lake/path-checks.js';
import { fileSize } from '../lake/publish.js';

/** Longer than the footer of nearly every file. */
export const FOOTER_BYTES = 64 * 1024;

/**
 * The number of rows, the names of columns, and the metadata entry of cryptodl, unchecked. `end`: the size of the file and its last bytes, if they are known; the rest of a longer footer is read from the file. Rejects with `disk` for a file that is not
 * Parquet or is truncated.
 */
export async function readFooter(path: string, end?: { readonly bytes: number; readonly tail: Buffer }) {
  const { bytes, tail } = end ?? { bytes: (await fileSize(path)) ?? 0, tail: Buffer.alloc(0) };
  const tailFrom = bytes - tail.length;
  const slice = async (from: number, to = bytes): Promise<ArrayBuffer> => {
    const part =
      from < tailFrom ? await rangeOf(path, from, to) : tail.subarray(from - tailFrom, to - tailFrom);
    return new Uint8Array(part).buffer;
  };
  try {
    const metadata = await parquetMetadataAsync(
      { byteLength: bytes, slice },
      { initialFetchSize: FOOTER_BYTES, geoparquet: false },
    );
    return {
      rows: Number(metadata.num_rows),
      columns: new Set(metadata.schema.flatMap(({ type, name }) => (type === undefined ? [] : [name]))),
      entry: metadata.key_value_metadata?.find(({ key }) => key === 'cryptodl')?.value,
    };
  } catch (error) {
    // Errors of the parser are plain ones, and errors of the disk have a code.
    if (error instanceof CryptodlError || errnoOf(error) !== 'unknown error') throw error;
    throw new CryptodlError('disk', `${path} is not a complete Parquet file: ${(error as Error).message}`);
  }
}

async function rangeOf(path: string, from: number, to: number): Promise<Uint8Array> {
  const file = await openRegularFile(path, constants.O_RDONLY);
  try {
    const bytes = new Uint8Array(to - from);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
