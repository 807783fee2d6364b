/** A strict zip reader: unpacks one named member, in memory or to a file, and checks its size and CRC-32. */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { crc32, createInflateRaw, inflateRaw, inflateRawSync, type ZlibOptions } from 'node:zlib';
import { CryptodlError } from '../../model/errors.js';
import type { Body } from '../../model/fetch.js';
import type { Packing, UnpackOptions } from '../exchange.js';
import { MAX_DEFLATE_RATIO, METHOD_STORED, brokenZip, bytesAt, checkEntry, checkRatio } from './zip-entry.js';
import { findMember, streamAt, type ZipEntry } from './zip-entry.js';

const WRITE_BUFFER_BYTES = 1024 * 1024;

/**
 * Unpacks the member `memberName`, which is in no folder. Its local header must agree with the central directory, and its data must
 * have the size and CRC-32 of these headers. Other members are ignored. A body in memory is of a member that has at most `memoryBytes` packed and unpacked.
 *
 * Rejects with `zip-broken`, `zip-unsupported` or `zip-bomb`, with the reason of the signal, or with a Node error of the disk. An incomplete file at `spoolPath` is removed.
 */
export async function unzip(zip: Body, memberName: string, options: UnpackOptions): Promise<Body> {
  const { memoryBytes, maxBytes, maxRatio = MAX_DEFLATE_RATIO, spoolPath, signal } = options;
  signal?.throwIfAborted();
  const { entry, dataOffset } = await findMember(zip, memberName, (found) => {
    checkEntry(found, maxBytes);
    checkRatio(found, found.uncompressedSize > memoryBytes ? maxRatio : MAX_DEFLATE_RATIO);
  });
  const size = entry.uncompressedSize;
  // The packed data of a small member can be large: deflate allows any number of empty blocks.
  if (Math.max(size, entry.compressedSize) > memoryBytes) {
    await spool(inflateChunks(zip, entry, dataOffset), spoolPath, signal);
    return { kind: 'file', path: spoolPath, size };
  }
  const bytes = await inflateWhole(zip, entry, dataOffset);
  signal?.throwIfAborted();
  return { kind: 'memory', bytes };
}

async function spool(
  chunks: AsyncIterable<Buffer>,
  path: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    const target = createWriteStream(path, { highWaterMark: WRITE_BUFFER_BYTES });
    await pipeline(chunks, target, { signal });
  } catch (error) {
    await rm(path, { force: true }).catch(() => undefined);
    signal?.throwIfAborted();
    throw error;
  }
}

/** The longest tail that can hold the end record: 22 bytes and a comment of 65,535. */
const TAIL_BYTES = 22 + 0xffff;

/** The packing of Binance: a zip with one CSV. Both have the base name of the key. */
export const ZIP: Packing = {
  name: 'zip',
  isStart: (head) => {
    const magic = head.subarray(0, 4).toString('latin1');
    return magic === 'PK\u0003\u0004' || magic === 'PK\u0005\u0006';
  },
  hasEnd: (tail) => tail.includes('PK\u0005\u0006', 0, 'latin1'),
  tailBytes: TAIL_BYTES,
  rowsName: (key) => `${key.slice(key.lastIndexOf('/') + 1, -'.zip'.length)}.csv`,
  unpack: unzip,
};

/** With the default of 16 KiB, decompression takes four times as long: each chunk is a round trip to the thread pool. */
const CHUNK_BYTES = 256 * 1024;
/** Below this packed size, decompression takes less time than the round trip to the thread pool (measured: 0.07 ms). */
const SYNC_BELOW_BYTES = 16 * 1024;

/**
 * The complete member, with verified size and CRC-32. Memory: the packed bytes, and a buffer of the declared size plus one byte (at
 * least 64) for the result. Rejects with `zip-broken`, `zip-bomb` or a Node error of the disk.
 */
async function inflateWhole(zip: Body, entry: ZipEntry, dataOffset: number): Promise<Buffer> {
  const packed = await bytesAt(zip, dataOffset, entry.compressedSize);
  const bytes =
    entry.compressionMethod === METHOD_STORED ? packed : await inflateAtOnce(packed, entry.uncompressedSize);
  assertWhole(entry, bytes.length, crc32(bytes));
  return bytes;
}

/** The member in chunks. Size and CRC-32 are checked after the last chunk; damaged data (`zip-broken`) and a member that is too long (`zip-bomb`) throw earlier. */
async function* inflateChunks(zip: Body, entry: ZipEntry, dataOffset: number): AsyncGenerator<Buffer> {
  const packed = streamAt(zip, dataOffset, entry.compressedSize);
  const chunks: AsyncIterable<Buffer> =
    entry.compressionMethod === METHOD_STORED ? packed : inflateStream(packed, entry.compressedSize);
  let total = 0;
  let crc = 0;
  for await (const chunk of chunks) {
    total += chunk.length;
    if (total > entry.uncompressedSize) throw tooLong(entry.uncompressedSize);
    crc = crc32(chunk, crc);
    yield chunk;
  }
  assertWhole(entry, total, crc);
}

const inflateInPool = promisify<Buffer, ZlibOptions, Buffer>(inflateRaw);

/** The result of zlib with `info: true`, which is missing in its types. */
interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

async function inflateAtOnce(packed: Buffer, size: number): Promise<Buffer> {
  // One output chunk for the whole member avoids further round trips; the extra byte reveals a member that is too long.
  const options = { info: true, chunkSize: Math.max(64, size + 1), maxOutputLength: Math.max(1, size) };
  let result: unknown;
  try {
    const isSmall = packed.length < SYNC_BELOW_BYTES;
    result = isSmall ? inflateRawSync(packed, options) : await inflateInPool(packed, options);
  } catch (error) {
    throw inflateError(error, size);
  }
  const { buffer, engine } = result as Inflated;
  assertConsumed(engine.bytesWritten, packed.length);
  return buffer;
}

async function* inflateStream(input: Readable, compressedSize: number): AsyncGenerator<Buffer> {
  const inflate = createInflateRaw({ chunkSize: CHUNK_BYTES });
  // stream.pipeline is not used: zlib never finishes its writable side when bytes follow the deflate stream.
  input.on('error', (error) => inflate.destroy(error));
  input.pipe(inflate);
  try {
    yield* inflate as AsyncIterable<Buffer>;
    assertConsumed(inflate.bytesWritten, compressedSize);
  } catch (error) {
    throw inflateError(error, undefined);
  } finally {
    input.destroy();
    inflate.destroy();
  }
}

function assertConsumed(consumed: number, compressedSize: number): void {
  if (consumed !== compressedSize)
    throw brokenZip(`${compressedSize - consumed} bytes follow the deflate stream`);
}

function assertWhole(entry: ZipEntry, size: number, crc: number): void {
  if (size !== entry.uncompressedSize)
    throw brokenZip(`the member unpacks to ${size} bytes, the zip declares ${entry.uncompressedSize}`);
  if (crc !== entry.crc32) throw brokenZip(`CRC-32 is ${hex(crc)}, the zip declares ${hex(entry.crc32)}`);
}

function tooLong(size: number): CryptodlError {
  const problem = `the member unpacks to more than the ${size} bytes that the zip declares`;
  return new CryptodlError('zip-bomb', problem);
}

function inflateError(error: unknown, size: number | undefined): unknown {
  if (!(error instanceof Error) || error instanceof CryptodlError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ERR_BUFFER_TOO_LARGE' && size !== undefined) return tooLong(size);
  if (code.startsWith('Z_')) return brokenZip(`the deflate stream is damaged: ${error.message}`, error);
  return error;
}

const hex = (crc: number): string => crc.toString(16).padStart(8, '0');
