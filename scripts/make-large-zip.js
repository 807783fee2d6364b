// Writes a zip of one CSV of any size with little memory, for tests of objects beyond 4 GiB.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';

import { makeZip } from './make-zip.js';

/** @import { FileHandle } from 'node:fs/promises' */

const END_BYTES = 22;
const LOCATOR_BYTES = 20;
const ZIP64_END_BYTES = 56;
const BUFFER_BYTES = 1 << 20;
/** Spot times are microseconds from here on. */
const MICROSECONDS_FROM = Date.UTC(2025, 0, 1);
const ROWS_PER_CHUNK = 10_000;
const MAX_ROW_BYTES = 87;
const NEWLINE = 0x0a;
const COMMA = 0x2c;
const POINT = 0x2e;
const ZERO = 0x30;
const MAKER = Buffer.from('True,True\n');
const TAKER = Buffer.from('False,True\n');

/**
 * @typedef {object} LargeZip
 * @property {string} name of the one member
 * @property {Iterable<Buffer> | AsyncIterable<Buffer>} chunks its text, taken one at a time; none may change afterwards
 * @property {number} [level] of deflate, default 1
 */

/**
 * Writes a zip with ZIP64 sizes and ZIP64 end records, however small it is; a file in its place is replaced. `rows`
 * counts the lines, a header among them; `sha256` is that of the zip. When `chunks` throws, a broken file stays.
 * @param {string} path
 * @param {LargeZip} options
 * @returns {Promise<{ rows: number, csvBytes: number, zipBytes: number, sha256: string }>}
 */
export async function makeLargeZip(path, { name, chunks, level = 1 }) {
  const csv = { crc: 0, bytes: 0, rows: 0 };
  const handle = await open(path, 'w');
  try {
    // The length of the header must be known before its numbers are.
    const dataOffset = recordsOf({ name, crc: 0, bytes: 0, packedBytes: 0 }).local.length;
    let end = dataOffset;
    await pipeline(
      counted(chunks, csv),
      createDeflateRaw({ level, chunkSize: BUFFER_BYTES }),
      async (/** @type {AsyncIterable<Buffer>} */ packed) => {
        for await (const chunk of packed) {
          await writeAll(handle, chunk, end);
          end += chunk.length;
        }
      },
    );
    const records = recordsOf({ name, ...csv, packedBytes: end - dataOffset });
    await writeAll(handle, records.local, 0);
    await writeAll(handle, records.tail, end);
    const zipBytes = end + records.tail.length;
    return { rows: csv.rows, csvBytes: csv.bytes, zipBytes, sha256: await digestOf(path) };
  } finally {
    await handle.close();
  }
}

/**
 * @param {LargeZip['chunks']} chunks
 * @param {{ crc: number, bytes: number, rows: number }} csv
 */
async function* counted(chunks, csv) {
  for await (const chunk of chunks) {
    csv.crc = crc32(chunk, csv.crc);
    csv.bytes += chunk.length;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) csv.rows += 1;
    yield chunk;
  }
}

/**
 * The records before and after the packed bytes: makeZip writes them for an empty member that claims the
 * numbers of the large one. Only the offset of the directory is then wrong.
 * @param {{ name: string, crc: number, bytes: number, packedBytes: number }} member
 */
function recordsOf({ name, crc, bytes, packedBytes }) {
  const claims = { crc32: crc, size: bytes, compressedSize: packedBytes };
  const empty = { name, data: '', compressed: Buffer.alloc(0), zip64: true, both: claims };
  const zip = makeZip([empty], { zip64: true });
  const zip64End = zip.length - END_BYTES - LOCATOR_BYTES - ZIP64_END_BYTES;
  const localBytes = Number(zip.readBigUInt64LE(zip64End + 48));
  for (const at of [zip64End + 48, zip64End + ZIP64_END_BYTES + 8]) {
    zip.writeBigUInt64LE(zip.readBigUInt64LE(at) + BigInt(packedBytes), at);
  }
  return { local: zip.subarray(0, localBytes), tail: zip.subarray(localBytes) };
}

/**
 * @param {FileHandle} handle
 * @param {Buffer} bytes
 * @param {number} position
 */
async function writeAll(handle, bytes, position) {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** @param {string} path */
async function digestOf(path) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: BUFFER_BYTES }), hash);
  return hash.digest('hex');
}

/**
 * Made-up rows of spot aggTrades, without a header: eight columns, contiguous ids, times ascending over
 * `[fromMs, fromMs + spanMs)`, in microseconds if `fromMs` is in 2025 or later. The same arguments give the same bytes.
 * A row is 86 or 87 bytes, with milliseconds three less: 50 million rows are more than 4 GiB.
 * @param {{ rows: number, fromMs: number, spanMs: number }} size
 * @returns {Generator<Buffer, void, void>}
 */
export function* aggTradeChunks({ rows, fromMs, spanMs }) {
  const perMs = fromMs < MICROSECONDS_FROM ? 1 : 1000;
  const timeDigits = perMs === 1 ? 13 : 16;
  const step = (spanMs * perMs) / rows;
  let trade = 2_000_000_000;
  let ticks = 6_000_000;
  let state = 1;
  for (let done = 0; done < rows;) {
    const end = Math.min(rows, done + ROWS_PER_CHUNK);
    const chunk = Buffer.allocUnsafe((end - done) * MAX_ROW_BYTES);
    let at = 0;
    for (; done < end; done += 1) {
      // The constants of Numerical Recipes; the upper bits are the good ones.
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      ticks = Math.min(9_000_000, Math.max(1_000_000, ticks + ((state >>> 28) & 7) - ((state >>> 25) & 7)));
      const last = trade + ((state >>> 24) & 3);
      const time = fromMs * perMs + Math.floor((done + (state >>> 8) / 2 ** 24) * step);
      at = put(chunk, at, 1_000_000_000 + done, 10, COMMA);
      at = put(chunk, at, Math.floor(ticks / 100), 5, POINT);
      at = put(chunk, at, (ticks % 100) * 1e6, 8, COMMA);
      at = put(chunk, at, (state >>> 20) & 3, 1, POINT);
      at = put(chunk, at, (state >>> 16) * 1000, 8, COMMA);
      at = put(chunk, at, trade, 10, COMMA);
      at = put(chunk, at, last, 10, COMMA);
      at = put(chunk, at, time, timeDigits, COMMA);
      const flags = (state >>> 27) % 2 === 0 ? MAKER : TAKER;
      for (let i = 0; i < flags.length; i += 1) chunk[at + i] = flags[i] ?? 0;
      at += flags.length;
      trade = last + 1;
    }
    yield chunk.subarray(0, at);
  }
}

/**
 * A number of that many digits, zeros in front, and a separator; returns the offset after it.
 * @param {Buffer} chunk
 * @param {number} at
 * @param {number} value
 * @param {number} digits
 * @param {number} separator
 */
function put(chunk, at, value, digits, separator) {
  let rest = value;
  for (let i = at + digits - 1; i >= at; i -= 1) {
    const tenth = Math.floor(rest / 10);
    chunk[i] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
  chunk[at + digits] = separator;
  return at + digits + 1;
}
