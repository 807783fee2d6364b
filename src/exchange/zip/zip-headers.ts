/** Checks the headers of a zip member. */
import { CryptodlError } from '../../model/errors.js';

export const unsupported = (message: string): CryptodlError => new CryptodlError('zip-unsupported', message);

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
export function checkLocal(
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
