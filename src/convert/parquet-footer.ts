/** Reads the footer of a Parquet file without DuckDB, because a query for the footer takes ten times as long. */
import { constants } from 'node:fs';
import { parquetMetadataAsync } from 'hyparquet/src/metadata.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { openRegularFile } from '../files/path-checks.js';

/** The bytes at the end of a file that are read first. Few files have a longer footer. */
const FOOTER_BYTES = 64 * 1024;

/** The number of rows, the names of the columns, and the entry of cryptodl, unchecked. Rejects with `disk` for a file that is no whole Parquet file. */
export async function readFooter(path: string) {
  const file = await openRegularFile(path, constants.O_RDONLY);
  try {
    const { size } = await file.stat();
    const slice = async (fromByte: number, toByte = size): Promise<ArrayBuffer> => {
      const bytes = new Uint8Array(toByte - fromByte);
      await file.read(bytes, 0, bytes.length, fromByte);
      return bytes.buffer;
    };
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
  } finally {
    await file.close();
  }
}
