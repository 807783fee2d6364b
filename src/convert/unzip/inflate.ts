import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { crc32, createInflateRaw, inflateRaw, inflateRawSync, type ZlibOptions } from 'node:zlib';
import { CryptodlError } from '../../model/errors.js';
import { type ByteSource, pieces } from './byte-source.js';
import { brokenZip, METHOD_STORED, type ZipEntry } from './zip-entry.js';

/** The default of 16 KiB costs four times as much: one trip to the thread pool per chunk. */
const CHUNK_BYTES = 256 * 1024;
/** Below, the trip to the thread pool costs more than the work (measured: 0.07 ms at this size). */
const SYNC_BELOW_BYTES = 16 * 1024;

/**
 * The whole member, checked against size and CRC-32. Holds the packed bytes in memory too, and never allocates
 * more than the declared size plus one byte for the result. Rejects with `zip-broken` or `zip-bomb`.
 */
export async function inflateWhole(source: ByteSource, entry: ZipEntry, dataOffset: number): Promise<Buffer> {
  const packed = await source.read(dataOffset, entry.compressedSize);
  const bytes = entry.method === METHOD_STORED ? packed : await inflateAtOnce(packed, entry.size);
  assertWhole(entry, bytes.length, crc32(bytes));
  return bytes;
}

/** The member in chunks; throws at its end, or as soon as it grows too long. Same checks and errors as above. */
export async function* inflateChunks(
  source: ByteSource,
  entry: ZipEntry,
  dataOffset: number,
): AsyncGenerator<Buffer> {
  const packed = pieces(source, dataOffset, entry.compressedSize);
  const chunks = entry.method === METHOD_STORED ? packed : inflateStream(packed, entry.compressedSize);
  let total = 0;
  let crc = 0;
  for await (const chunk of chunks) {
    total += chunk.length;
    if (total > entry.size) throw tooLong(entry.size);
    crc = crc32(chunk, crc);
    yield chunk;
  }
  assertWhole(entry, total, crc);
}

const inflateInPool = promisify<Buffer, ZlibOptions, Buffer>(inflateRaw);

/** What zlib gives with `info: true`; the types do not know it. */
interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

async function inflateAtOnce(packed: Buffer, size: number): Promise<Buffer> {
  // One output chunk for everything, so that there is one trip; the spare byte shows a member that is too long.
  const options = { info: true, chunkSize: Math.max(64, size + 1), maxOutputLength: Math.max(1, size) };
  let result: unknown;
  try {
    result =
      packed.length < SYNC_BELOW_BYTES
        ? inflateRawSync(packed, options)
        : await inflateInPool(packed, options);
  } catch (error) {
    throw inflateError(error, size);
  }
  if (!isInflated(result)) throw new TypeError('zlib gave no engine');
  assertConsumed(result.engine.bytesWritten, packed.length);
  return result.buffer;
}

function isInflated(result: unknown): result is Inflated {
  return typeof result === 'object' && result !== null && 'buffer' in result && 'engine' in result;
}

async function* inflateStream(
  packed: AsyncGenerator<Buffer>,
  compressedSize: number,
): AsyncGenerator<Buffer> {
  const input = Readable.from(packed);
  const inflate = createInflateRaw({ chunkSize: CHUNK_BYTES });
  // Not stream.pipeline: zlib never finishes its writable side when bytes follow the deflate stream.
  input.on('error', (error) => inflate.destroy(error));
  input.pipe(inflate);
  try {
    const unpacked: AsyncIterable<Buffer> = inflate;
    yield* unpacked;
    assertConsumed(inflate.bytesWritten, compressedSize);
  } catch (error) {
    throw inflateError(error, undefined);
  } finally {
    input.destroy();
    inflate.destroy();
  }
}

function assertConsumed(consumed: number, compressedSize: number): void {
  if (consumed === compressedSize) return;
  throw brokenZip(`the deflate stream ends ${compressedSize - consumed} bytes early`);
}

function assertWhole(entry: ZipEntry, size: number, crc: number): void {
  if (size !== entry.size) throw brokenZip(`the member unpacks to ${size} bytes, the zip says ${entry.size}`);
  if (crc !== entry.crc32) throw brokenZip(`CRC-32 is ${hex(crc)}, the zip says ${hex(entry.crc32)}`);
}

function tooLong(size: number): CryptodlError {
  return new CryptodlError('zip-bomb', `the member unpacks to more than the ${size} bytes the zip says`);
}

function inflateError(error: unknown, size: number | undefined): unknown {
  if (!(error instanceof Error) || error instanceof CryptodlError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ERR_BUFFER_TOO_LARGE' && size !== undefined) return tooLong(size);
  if (code.startsWith('Z_')) return brokenZip(`the deflate stream is damaged: ${error.message}`, error);
  return error;
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0');
}
