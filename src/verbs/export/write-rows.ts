/** Writes the rows of one file of an export. */
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';
import type { DuckDb } from '../../convert/duckdb.js';
import { quoteText } from '../../convert/sql.js';
import { openRegularFile } from '../../files/path-checks.js';
import { CryptodlError } from '../../model/errors.js';
import type { ExportFile } from './export-file.js';

/**
 * Macros for the SQL of files.
 * - `num(x)`: the text of a number, with its digits as the lake has them and without exponent. Of a DOUBLE, these are the fewest digits that
 *   give the same DOUBLE again. A DECIMAL has 38 digits, so the digits behind the point depend on the size of the number.
 * - `stamp(t, form)`: a time in UTC by a pattern of strftime.
 * - `side(is_buyer_maker)`: the side of the taker.
 */
export const MACROS = String.raw`
CREATE OR REPLACE TEMP MACRO num(x) AS CASE
  WHEN NOT contains(lower(x::VARCHAR), 'e') THEN
    CASE typeof(x) WHEN 'VARCHAR' THEN x::VARCHAR ELSE regexp_replace(x::VARCHAR, '\.0$', '') END
  WHEN abs(x::DOUBLE) >= 1e15 THEN x::VARCHAR::DECIMAL(38, 0)::VARCHAR
  WHEN abs(x::DOUBLE) >= 1 THEN rtrim(rtrim(x::VARCHAR::DECIMAL(38, 18)::VARCHAR, '0'), '.')
  ELSE rtrim(rtrim(x::VARCHAR::DECIMAL(38, 37)::VARCHAR, '0'), '.') END;
CREATE OR REPLACE TEMP MACRO stamp(t, form) AS strftime(make_timestamp(epoch_us(t)), form);
CREATE OR REPLACE TEMP MACRO side(is_buyer_maker) AS CASE WHEN is_buyer_maker THEN 'sell' ELSE 'buy' END`;

/** Writes the rows of a SELECT to a file in `folder`. Resolves with its path, and the number of rows. */
export async function writeRows(
  duckdb: DuckDb,
  select: string,
  { copy, utc, member }: ExportFile['form'],
  folder: string,
): Promise<{ rows: number; path: string }> {
  const file = join(folder, 'rows');
  const [copied] = await duckdb.rows(`COPY (${select}) TO ${quoteText(file)} (${copy})`);
  const rows = Number(copied?.['Count']);
  if (utc !== undefined) await markAsUtc(file, utc);
  if (member === undefined) return { rows, path: file };
  const zip = join(folder, 'zip');
  await writeZip(file, member, zip);
  return { rows, path: zip };
}

/** The time of the member is that of the format's first day, so that equal rows give equal zips. */
async function writeZip(csv: string, member: string, path: string): Promise<void> {
  const zip = new yazl.ZipFile();
  zip.addReadStream(createReadStream(csv), member, {
    mtime: new Date(1980, 0, 1),
    // Without it, yazl also writes the time in UTC, which depends on the local time zone.
    forceDosTimestamp: true,
    mode: 0o100644,
  });
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(path, { flags: 'wx' }));
}

/** A file ends with the length of its footer in 4 bytes, and `PAR1`. */
const TAIL_BYTES = 8;

/**
 * The logical type of a column in the footer (thrift compact protocol): a TIMESTAMP with `isAdjustedToUTC` false, in nanoseconds. The third
 * byte is the boolean.
 */
const NANOSECONDS = [0x6c, 0x8c, 0x12, 0x1c, 0x3c, 0x00, 0x00, 0x00];
const IS_ADJUSTED = { at: 2, yes: 0x11 };

/**
 * Changes one byte of the footer: the column's times become UTC. DuckDB has no type for nanoseconds with a time zone, and readers need both.
 * Rejects with `bug` for a file without exactly one such column.
 */
async function markAsUtc(path: string, column: string): Promise<void> {
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
