/** Finds a member of a zip with yauzl, and checks its headers before it is unpacked. */
import { open } from 'node:fs/promises';
import { callbackify } from 'node:util';
import yauzl, { type Entry, type LocalFileHeader, type ZipFile } from 'yauzl';
import type { Body } from '../../model/fetch.js';
import { CryptodlError } from '../../model/errors.js';

/** One member as described by the central directory (APPNOTE.TXT 4.3.12), with ZIP64 fields resolved. */
export type ZipEntry = Entry;

const MAX_MEMBERS = 65_535;
const FLAG_UTF8 = 0x0800;

/**
 * The root member `memberName`, and the position of its first packed byte, in a zip of any layout that yauzl reads: several members, ZIP64, data descriptors, comments. `check` throws for an
 * entry that must not be unpacked. Rejects with `zip-broken` or `zip-unsupported`, with the error of `check`, or with a Node error of the disk.
 */
export async function findMember(
  source: ByteSource,
  memberName: string,
  check: (entry: ZipEntry) => void,
): Promise<{ readonly entry: ZipEntry; readonly dataOffset: number }> {
  let zip: ZipFile | undefined;
  try {
    // Names are not decoded: with decoding, yauzl rejects the whole zip for one name such as `../x`.
    const options = { decodeStrings: false, autoClose: false };
    zip = await yauzl.fromRandomAccessReaderPromise(new SourceReader(source), source.size, options);
    const entry = await searchMembers(zip, memberName);
    await assertNoMoreMembers(zip, source);
    check(entry);
    const local = await zip.readLocalFileHeaderPromise(entry);
    checkLocal(local, entry);
    return { entry, dataOffset: local.fileDataStart };
  } catch (error) {
    if (!isReaderError(error)) throw error;
    throw /encryption/.test(error.message) ? unsupported(error.message) : brokenZip(error.message, error);
  } finally {
    zip?.close();
  }
}

class SourceReader extends yauzl.RandomAccessReader {
  readonly #source: ByteSource;

  constructor(source: ByteSource) {
    super();
    this.#source = source;
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    const copy = async (): Promise<void> => {
      (await this.#source.read(position, length)).copy(buffer, offset);
    };
    callbackify(copy)(callback);
  }
}

async function searchMembers(zip: ZipFile, memberName: string): Promise<ZipEntry> {
  let found: ZipEntry | undefined;
  for await (const entry of zip.eachEntry()) {
    if (zip.entriesRead > MAX_MEMBERS) throw unsupported(`more than ${MAX_MEMBERS} members`);
    if (nameOf(entry) !== memberName) continue;
    if (found !== undefined) throw brokenZip(`two members are named "${memberName}"`);
    found = entry;
  }
  if (found === undefined) throw brokenZip(`no member "${memberName}" in the zip`);
  return found;
}

/** The name in the Unicode path field of Info-ZIP (0x7075), else the raw name as UTF-8, even if the writer omitted the UTF-8 flag. */
function nameOf(entry: Entry): string {
  const flags = entry.generalPurposeBitFlag | FLAG_UTF8;
  return yauzl.getFileNameLowLevel(flags, entry.fileNameRaw, entry.extraFields, true);
}

/** Rejects a central directory with more entries than the end record counts: two readers could see different members. */
async function assertNoMoreMembers(zip: ZipFile, source: ByteSource): Promise<void> {
  // The property is a number, although its type differs.
  const cursor = Number(zip.readEntryCursor);
  if (cursor + 46 > source.size || (await source.read(cursor, 4)).readUInt32LE(0) !== 0x02014b50) return;
  throw brokenZip(`the end record counts ${zip.entryCount} members, the directory holds more`);
}

function unsupported(message: string): CryptodlError {
  return new CryptodlError('zip-unsupported', message);
}

/** yauzl throws plain errors without a code. Errors of Node and CryptodlErrors have a code; bugs have another class. */
function isReaderError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'Error' && !('code' in error);
}

// The headers of a member.

export const METHOD_STORED = 0;
const METHOD_DEFLATE = 8;
const MAX_UINT32 = 0xffffffff;
const FLAG_ENCRYPTED = 0x0001;
const FLAG_DESCRIPTOR = 0x0008;
const FLAG_PATCHED = 0x0020;
const FLAG_STRONG_ENCRYPTION = 0x0040;
const ZIP64_EXTRA_ID = 0x0001;
/** The maximum of deflate: 258 bytes need at least two bits. */
export const MAX_DEFLATE_RATIO = 1032;

/** Throws `zip-unsupported`, `zip-broken` or `zip-bomb` before anything is allocated or inflated. */
export function checkEntry(entry: Entry, maxBytes: number): void {
  const { compressionMethod: method, generalPurposeBitFlag: flags } = entry;
  if ((flags & (FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION)) !== 0) throw unsupported('the member is encrypted');
  if ((flags & FLAG_PATCHED) !== 0) throw unsupported('the member is patched data');
  if (method !== METHOD_STORED && method !== METHOD_DEFLATE)
    throw unsupported(`compression method ${method}; 0 and 8 are supported`);
  if (method === METHOD_STORED && entry.compressedSize !== entry.uncompressedSize) {
    throw brokenZip(
      `the member is stored, but its packed size is ${entry.compressedSize} and its unpacked size is ${entry.uncompressedSize}`,
    );
  }
  if (entry.uncompressedSize > maxBytes) {
    throw new CryptodlError(
      'zip-bomb',
      `the member unpacks to ${entry.uncompressedSize} bytes, the limit is ${maxBytes}`,
    );
  }
}

/** Throws `zip-bomb` for a member whose declared size exceeds its packed size times `maxRatio`. */
export function checkRatio({ uncompressedSize: size, compressedSize }: Entry, maxRatio: number): void {
  if (size <= compressedSize * maxRatio) return;
  const sizes = `${size} unpacked bytes, but only ${compressedSize} packed bytes`;
  throw new CryptodlError('zip-bomb', `the zip declares ${sizes}: more than ${maxRatio} to 1`);
}

/**
 * Throws `zip-broken` when name, method, encryption flag, CRC-32 or sizes differ between local header and central directory: two readers could then
 * see different files.
 */
function checkLocal(local: LocalFileHeader, entry: Entry): void {
  const flags = local.generalPurposeBitFlag;
  if (!local.fileName.equals(entry.fileNameRaw)) throw disagreement('name');
  if (local.compressionMethod !== entry.compressionMethod) throw disagreement('method');
  if (((flags ^ entry.generalPurposeBitFlag) & FLAG_ENCRYPTED) !== 0) throw disagreement('encryption flag');
  const streamed = (flags & FLAG_DESCRIPTOR) !== 0;
  const sizes = localSizes(local);
  assertSame('CRC-32', local.crc32, entry.crc32, streamed);
  assertSame('packed size', sizes.compressedSize, entry.compressedSize, streamed);
  assertSame('size', sizes.uncompressedSize, entry.uncompressedSize, streamed);
}

type Sizes = Pick<LocalFileHeader, 'compressedSize' | 'uncompressedSize'>;

function localSizes({ compressedSize, uncompressedSize, extraField }: LocalFileHeader): Sizes {
  const isZip64 = uncompressedSize === MAX_UINT32 || compressedSize === MAX_UINT32;
  const extra = isZip64 ? yauzl.parseExtraFields(extraField) : [];
  const zip64 = extra.find(({ id }) => id === ZIP64_EXTRA_ID)?.data;
  // The local record always holds both sizes (APPNOTE.TXT 4.5.3).
  if (zip64 === undefined || zip64.length < 16) return { compressedSize, uncompressedSize };
  return {
    uncompressedSize: Number(zip64.readBigUInt64LE(0)),
    compressedSize: Number(zip64.readBigUInt64LE(8)),
  };
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
