/** Reads the footer of a Parquet file without DuckDB, because a query for the footer takes ten times as long. */
import { constants } from 'node:fs';
import { parquetMetadataAsync } from 'hyparquet/src/metadata.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { openRegularFile } from '../lake/path-checks.js';
import { fileSize } from '../lake/publish.js';

/** The bytes at the end of a file that are read first. Few files have a longer footer. */
export const FOOTER_BYTES = 64 * 1024;

/**
 * The number of rows, the names of the columns, and the metadata entry of cryptodl, unchecked. `known`: the size and the last bytes
 * of the file, if the caller has read them. Then the file is read only if `tail` lacks a part of its last `FOOTER_BYTES`, or of a longer footer. Rejects with `disk` for a file that is truncated or not Parquet.
 */
export async function readFooter(path: string, known?: { readonly bytes: number; readonly tail: Buffer }) {
  const { bytes: size, tail } = known ?? { bytes: (await fileSize(path)) ?? 0, tail: Buffer.alloc(0) };
  const tailFrom = size - tail.length;
  const slice = async (from: number, to = size): Promise<ArrayBuffer> => {
    const part =
      from < tailFrom ? await readRange(path, from, to) : tail.subarray(from - tailFrom, to - tailFrom);
    return new Uint8Array(part).buffer;
  };
  try {
    const metadata = await parquetMetadataAsync(
      { byteLength: size, slice },
      { initialFetchSize: FOOTER_BYTES, geoparquet: false },
    );
    // Only columns have a type. The root of the schema has none.
    return {
      rows: Number(metadata.num_rows),
      columns: new Set(metadata.schema.flatMap(({ type, name }) => (type === undefined ? [] : [name]))),
      entry: metadata.key_value_metadata?.find(({ key }) => key === 'cryptodl')?.value,
    };
  } catch (error) {
    // Errors of the disk have a code. Errors of the parser have none.
    if (error instanceof CryptodlError || errnoOf(error) !== 'unknown error') throw error;
    throw new CryptodlError('disk', `${path} is not a complete Parquet file: ${(error as Error).message}`);
  }
}

async function readRange(path: string, from: number, to: number): Promise<Uint8Array> {
  const file = await openRegularFile(path, constants.O_RDONLY);
  try {
    const bytes = new Uint8Array(to - from);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
