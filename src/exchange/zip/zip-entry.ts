/** Finds a member of a zip with yauzl, and checks its headers before it is unpacked. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { callbackify } from 'node:util';
import yauzl from 'yauzl';
import type { Entry, ZipFile } from 'yauzl';
import { CryptodlError } from '../../model/errors.js';
import { bodySize, type Body } from '../../model/fetch.js';

/** One member as described by the central directory (APPNOTE.TXT 4.3.12), with ZIP64 fields resolved. */
export type ZipEntry = Entry;

const MAX_MEMBERS = 65_535;
const FLAG_UTF8 = 0x0800;

/**
 * The root member `memberName`, and the position of its first packed byte, in a zip of any layout that yauzl reads: several members, ZIP64, data descriptors, comments. `check` throws for an
 * entry that must not be unpacked. Rejects with `zip-broken` or `zip-unsupported`, with the error of `check`, or with a Node error of the disk.
 */
export async function findMember(
  body: Body,
  memberName: string,
  check: (entry: ZipEntry) => void,
): Promise<{ readonly entry: ZipEntry; readonly dataOffset: number }> {
  let zip: ZipFile | undefined;
  try {
    // Names are not decoded: with decoding, yauzl rejects the whole zip for one name such as `../x`.
    const options = { decodeStrings: false, autoClose: false };
    zip = await yauzl.fromRandomAccessReaderPromise(new BodyReader(body), bodySize(body), options);
    const entry = await searchMembers(zip, memberName);
    await assertNoMoreMembers(zip, body);
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

/** The readers of yauzl itself throw outside of the caller's reach for a position beyond 2^53. */
class BodyReader extends yauzl.RandomAccessReader {
  constructor(private readonly body: Body) {
    super();
  }

  override read(
    target: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    const copy = async (): Promise<void> => {
      (await bytesAt(this.body, position, length)).copy(target, offset);
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
const nameOf = (entry: Entry): string =>
  yauzl.getFileNameLowLevel(FLAG_UTF8, entry.fileNameRaw, entry.extraFields, true);

/** Rejects a central directory with more entries than the end record counts: two readers could see different members. */
async function assertNoMoreMembers(zip: ZipFile, body: Body): Promise<void> {
  // The property is a number, although its type differs.
  const cursor = Number(zip.readEntryCursor);
  if (cursor + 46 > bodySize(body) || (await bytesAt(body, cursor, 4)).readUInt32LE(0) !== 0x02014b50) return;
  throw brokenZip(`the end record counts ${zip.entryCount} members, the directory holds more`);
}

/** yauzl throws plain errors without a code. Errors of Node and CryptodlErrors have a code; bugs have another class. */
const isReaderError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'Error' && !('code' in error);

/** Exactly `length` bytes of a zip. Rejects with `zip-broken` beyond its end. Bytes in memory are not copied. */
export async function bytesAt(body: Body, position: number, length: number): Promise<Buffer> {
  // Positions come from the headers of the zip. They have up to 64 bits; as JavaScript numbers they are inexact beyond 2^53.
  const isInside = Number.isSafeInteger(position) && position >= 0 && position + length <= bodySize(body);
  if (isInside && body.kind === 'memory') return body.bytes.subarray(position, position + length);
  const bytes = isInside ? await buffer(streamAt(body, position, length)) : undefined;
  if (bytes?.length === length) return bytes;
  throw brokenZip(`the zip is truncated: it ends before the ${length} bytes that begin at ${position}`);
}

const PIECE_BYTES = 256 * 1024;

/** `length` bytes of a zip that has them, as a stream. */
export function streamAt(body: Body, position: number, length: number): Readable {
  if (body.kind === 'memory') return Readable.from([body.bytes.subarray(position, position + length)]);
  if (length === 0) return Readable.from([]);
  const range = { start: position, end: position + length - 1 };
  return createReadStream(body.path, { ...range, highWaterMark: PIECE_BYTES });
}

// The checks of the headers.

const unsupported = (message: string): CryptodlError => new CryptodlError('zip-unsupported', message);

export function brokenZip(message: string, cause?: unknown): CryptodlError {
  return new CryptodlError('zip-broken', message, { cause });
}

/** The fields of both headers of a member that are checked. */
type Header = Readonly<Record<keyof typeof SAME | 'compressionMethod' | 'generalPurposeBitFlag', number>>;

export const METHOD_STORED = 0;
const METHOD_DEFLATE = 8;
const MAX_UINT32 = 0xffffffff;
const FLAG_ENCRYPTED = 0x0001;
const FLAG_DESCRIPTOR = 0x0008;
const FLAG_PATCHED = 0x0020;
/** The maximum of deflate: 258 bytes need at least two bits. */
export const MAX_DEFLATE_RATIO = 1032;

/** Throws `zip-unsupported` or `zip-bomb` before anything is allocated or inflated. yauzl refuses strong encryption, and a stored member with two sizes. */
export function checkEntry(entry: Header, maxBytes: number): void {
  const { compressionMethod: method, generalPurposeBitFlag: flags, uncompressedSize: size } = entry;
  if ((flags & FLAG_ENCRYPTED) !== 0) throw unsupported('the member is encrypted');
  if ((flags & FLAG_PATCHED) !== 0) throw unsupported('the member is patched data');
  if (method !== METHOD_STORED && method !== METHOD_DEFLATE)
    throw unsupported(`compression method ${method}; 0 and 8 are supported`);
  if (size > maxBytes)
    throw new CryptodlError('zip-bomb', `the member unpacks to ${size} bytes, the limit is ${maxBytes}`);
}

/** Throws `zip-bomb` for a member whose declared size exceeds its packed size times `maxRatio`. */
export function checkRatio({ uncompressedSize: size, compressedSize }: Header, maxRatio: number): void {
  if (size <= compressedSize * maxRatio) return;
  const sizes = `${size} unpacked bytes, but only ${compressedSize} packed bytes`;
  throw new CryptodlError('zip-bomb', `the zip declares ${sizes}: more than ${maxRatio} to 1`);
}

const SAME = { crc32: 'CRC-32', compressedSize: 'packed size', uncompressedSize: 'size' } as const;

/**
 * Throws `zip-broken` when name, method, encryption flag, CRC-32 or sizes differ between local header and central directory: two readers could then
 * see different files. Sizes in the ZIP64 field of the local header are not compared.
 */
function checkLocal(
  local: Header & { readonly fileName: Buffer },
  entry: Header & { readonly fileNameRaw: Buffer },
): void {
  const flags = local.generalPurposeBitFlag;
  if (!local.fileName.equals(entry.fileNameRaw)) throw disagreement('name');
  if (local.compressionMethod !== entry.compressionMethod) throw disagreement('method');
  if (((flags ^ entry.generalPurposeBitFlag) & FLAG_ENCRYPTED) !== 0) throw disagreement('encryption flag');
  // A streaming writer does not know sizes and CRC when it writes the local header: it writes zeros.
  const isStreamed = (flags & FLAG_DESCRIPTOR) !== 0;
  for (const [field, words] of Object.entries(SAME) as [keyof typeof SAME, string][]) {
    const isOpen = (isStreamed && local[field] === 0) || (field !== 'crc32' && local[field] === MAX_UINT32);
    if (local[field] !== entry[field] && !isOpen) throw disagreement(words);
  }
}

const disagreement = (field: string): CryptodlError =>
  brokenZip(`local header and central directory disagree about the ${field}`);
