/** Marks the times of a Parquet file as UTC. DuckDB has no type for nanoseconds with a time zone, and readers need both. */
import { constants } from 'node:fs';
import { openRegularFile } from '../lake/path-checks.js';
import { CryptodlError } from '../model/errors.js';

/** A file ends with the length of its footer in 4 bytes, and `PAR1`. */
const TAIL_BYTES = 8;

/**
 * The logical type of a column in the footer (thrift compact protocol): a TIMESTAMP with `isAdjustedToUTC` false, in nanoseconds. The third
 * byte is the boolean.
 */
const NANOSECONDS = [0x6c, 0x8c, 0x12, 0x1c, 0x3c, 0x00, 0x00, 0x00];
const IS_ADJUSTED = { at: 2, yes: 0x11 };

/** Changes one byte of the footer: the column's times become UTC. Rejects with `bug` for a file without exactly one such column. */
export async function markAsUtc(path: string, column: string): Promise<void> {
  const file = await openRegularFile(path, constants.O_RDWR);
  try {
    const { size } = await file.stat();
    const tail = Buffer.alloc(TAIL_BYTES);
    await file.read(tail, 0, TAIL_BYTES, size - TAIL_BYTES);
    const length = tail.readUInt32LE(0);
    const start = size - TAIL_BYTES - length;
    const footer = Buffer.alloc(length);
    await file.read(footer, 0, length, start);
    const name = Buffer.from(column);
    const wanted = Buffer.concat([Buffer.of(name.length), name, Buffer.from(NANOSECONDS)]);
    const found = footer.indexOf(wanted);
    if (found < 0 || footer.includes(wanted, found + 1))
      throw new CryptodlError(
        'bug',
        `the footer of ${path} does not have one column ${column} in nanoseconds`,
      );
    const at = start + found + 1 + name.length + IS_ADJUSTED.at;
    await file.write(Buffer.of(IS_ADJUSTED.yes), 0, 1, at);
  } finally {
    await file.close();
  }
}
