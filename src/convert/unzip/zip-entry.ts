/** The bytes of a zip, and the checks of a member's headers before it is unpacked. */
import { open } from 'node:fs/promises';
import type { Body } from '../../http/fetch.js';
import { CryptodlError } from '../../model/errors.js';

/** One member as described by the central directory (APPNOTE.TXT 4.3.12), with ZIP64 fields resolved. */
export interface ZipEntry {
  /** Raw bytes; never used as a path. */
  readonly name: Buffer;
  readonly flags: number;
  readonly method: number;
  readonly crc32: number;
  readonly compressedSize: number;
  readonly size: number;
  /** Position of the local header. */
  readonly offset: number;
}

export const METHOD_STORED = 0;
const METHOD_DEFLATE = 8;
const MAX_UINT32 = 0xffffffff;

const FLAG_ENCRYPTED = 0x0001;
const FLAG_DESCRIPTOR = 0x0008;
const FLAG_PATCHED = 0x0020;
const FLAG_STRONG_ENCRYPTION = 0x0040;
const ZIP64_EXTRA_ID = 0x0001;
const LOCAL_HEADER_BYTES = 30;
/** The maximum of deflate: 258 bytes need at least two bits. */
export const MAX_DEFLATE_RATIO = 1032;

/** Throws `zip-unsupported`, `zip-broken` or `zip-bomb` before anything is allocated or inflated. */
export function checkEntry(entry: ZipEntry, maxBytes: number): void {
  if ((entry.flags & (FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION)) !== 0) {
    throw new CryptodlError('zip-unsupported', 'the member is encrypted');
  }
  if ((entry.flags & FLAG_PATCHED) !== 0)
    throw new CryptodlError('zip-unsupported', 'the member is patched data');
  if (entry.method !== METHOD_STORED && entry.method !== METHOD_DEFLATE) {
    throw new CryptodlError('zip-unsupported', `compression method ${entry.method}; 0 and 8 are supported`);
  }
  if (entry.method === METHOD_STORED && entry.compressedSize !== entry.size) {
    throw brokenZip(
      `the member is stored, but its packed size is ${entry.compressedSize} and its unpacked size is ${entry.size}`,
    );
  }
  if (entry.size > maxBytes) {
    throw new CryptodlError(
      'zip-bomb',
      `the member unpacks to ${entry.size} bytes, the limit is ${maxBytes}`,
    );
  }
}

/** Throws `zip-bomb` for a member whose declared size exceeds its packed size times `maxRatio`. */
export function checkRatio({ size, compressedSize }: ZipEntry, maxRatio: number): void {
  if (size <= compressedSize * maxRatio) return;
  const sizes = `${size} unpacked bytes, but only ${compressedSize} packed bytes`;
  throw new CryptodlError('zip-bomb', `the zip declares ${sizes}: more than ${maxRatio} to 1`);
}

/**
 * Position of the first packed byte of the member. Rejects with `zip-broken` when bytes are missing, and when name, method,
 * encryption flag, CRC-32 or sizes differ between local header and central directory: two readers could then see different files.
 */
export async function locateData(source: ByteSource, entry: ZipEntry): Promise<number> {
  const header = await source.read(entry.offset, LOCAL_HEADER_BYTES);
  if (header.readUInt32LE(0) !== 0x04034b50) throw brokenZip(`no local header at ${entry.offset}`);
  const flags = header.readUInt16LE(6);
  const nameLength = header.readUInt16LE(26);
  const extraLength = header.readUInt16LE(28);
  const tail = await source.read(entry.offset + LOCAL_HEADER_BYTES, nameLength + extraLength);
  if (!tail.subarray(0, nameLength).equals(entry.name)) throw disagreement('name');
  if (header.readUInt16LE(8) !== entry.method) throw disagreement('method');
  if (((flags ^ entry.flags) & FLAG_ENCRYPTED) !== 0) throw disagreement('encryption flag');
  const streamed = (flags & FLAG_DESCRIPTOR) !== 0;
  const sizes = localSizes(header, tail.subarray(nameLength));
  assertSame('CRC-32', header.readUInt32LE(14), entry.crc32, streamed);
  assertSame('packed size', sizes.compressedSize, entry.compressedSize, streamed);
  assertSame('size', sizes.size, entry.size, streamed);
  const dataOffset = entry.offset + LOCAL_HEADER_BYTES + nameLength + extraLength;
  const missing = dataOffset + entry.compressedSize - source.size;
  if (missing > 0) throw brokenZip(`the zip is truncated: the last ${missing} packed bytes are missing`);
  return dataOffset;
}

export function brokenZip(message: string, cause?: unknown): CryptodlError {
  return new CryptodlError('zip-broken', message, { cause });
}

function disagreement(field: string): CryptodlError {
  return brokenZip(`local header and central directory disagree about the ${field}`);
}

/** A streaming writer does not know sizes and CRC when it writes the local header: it writes zeros or the ZIP64 mark. */
function assertSame(field: string, local: number, central: number, streamed: boolean): void {
  if (local === central) return;
  if (streamed && (local === 0 || local === MAX_UINT32)) return;
  throw disagreement(field);
}

function localSizes(header: Buffer, extra: Buffer): { compressedSize: number; size: number } {
  const compressedSize = header.readUInt32LE(18);
  const size = header.readUInt32LE(22);
  if (size !== MAX_UINT32 && compressedSize !== MAX_UINT32) return { compressedSize, size };
  const zip64 = zip64Extra(extra);
  // The local record always holds both sizes (APPNOTE.TXT 4.5.3).
  if (zip64 === undefined || zip64.length < 16) return { compressedSize, size };
  return { size: Number(zip64.readBigUInt64LE(0)), compressedSize: Number(zip64.readBigUInt64LE(8)) };
}

function zip64Extra(extra: Buffer): Buffer | undefined {
  let at = 0;
  while (at + 4 <= extra.length) {
    const end = at + 4 + extra.readUInt16LE(at + 2);
    if (extra.readUInt16LE(at) === ZIP64_EXTRA_ID) return extra.subarray(at + 4, end);
    at = end;
  }
  return undefined;
}

// Random access to the bytes of a zip.

/** A body in memory or on disk that is read by position. */
export interface ByteSource {
  readonly size: number;
  /** Exactly `length` bytes; rejects with `zip-broken` beyond the end. Bytes in memory are not copied. */
  read(position: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

const PIECE_BYTES = 256 * 1024;

/** Opens a body; the caller must close it. Rejects with the Node error of `open`. */
export async function openSource(body: Body): Promise<ByteSource> {
  if (body.kind === 'memory') {
    const { bytes } = body;
    return {
      size: bytes.length,
      read: (position, length) =>
        new Promise((resolve) => {
          assertInside(position, length, bytes.length);
          resolve(bytes.subarray(position, position + length));
        }),
      close: () => Promise.resolve(),
    };
  }
  const { path, size } = body;
  const handle = await open(path, 'r');
  return {
    size,
    read: async (position, length) => {
      assertInside(position, length, size);
      const buffer = Buffer.allocUnsafe(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(buffer, filled, length - filled, position + filled);
        if (bytesRead === 0) throw cutError(position + filled, length - filled);
        filled += bytesRead;
      }
      return buffer;
    },
    close: () => handle.close(),
  };
}

/** `length` bytes from `position` on, in pieces of 256 KiB. */
export async function* pieces(source: ByteSource, position: number, length: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < length; done += PIECE_BYTES) {
    yield await source.read(position + done, Math.min(PIECE_BYTES, length - done));
  }
}

function assertInside(position: number, length: number, size: number): void {
  // Positions come from the headers of the zip. They have up to 64 bits; as JavaScript numbers they are inexact beyond 2^53.
  if (!Number.isSafeInteger(position) || position < 0 || position + length > size)
    throw cutError(position, length);
}

function cutError(position: number, length: number): CryptodlError {
  return new CryptodlError(
    'zip-broken',
    `the zip is truncated: it ends before the ${length} bytes that begin at ${position}`,
  );
}
