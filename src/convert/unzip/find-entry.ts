/** Finds a member of a zip with yauzl. */
import { callbackify } from 'node:util';
import yauzl, { type Entry, type ZipFile } from 'yauzl';
import { CryptodlError } from '../../model/errors.js';
import { listText } from '../../model/units.js';
import type { ByteSource } from './zip-entry.js';
import { brokenZip, type ZipEntry } from './zip-entry.js';

const MAX_MEMBERS = 65_535;
const SHOWN_NAMES = 3;
const SHOWN_CHARACTERS = 80;
const FLAG_UTF8 = 0x0800;

/**
 * The entry of the root member `memberName` in a zip of any layout that yauzl reads: several members, ZIP64, data descriptors,
 * comments. Rejects with `zip-broken` or `zip-unsupported`, or with a Node error of the disk.
 */
export async function findEntry(source: ByteSource, memberName: string): Promise<ZipEntry> {
  const zip = await openZip(source);
  try {
    const found = await searchMembers(zip, memberName);
    await assertNoMoreMembers(zip, source);
    return found;
  } catch (error) {
    if (!isReaderError(error)) throw error;
    throw /encryption/.test(error.message) ? unsupported(error.message) : brokenZip(error.message, error);
  } finally {
    zip.close();
  }
}

async function openZip(source: ByteSource): Promise<ZipFile> {
  // Names are not decoded: with decoding, yauzl rejects the whole zip for one name such as `../x`.
  const options = { decodeStrings: false, autoClose: false };
  try {
    return await yauzl.fromRandomAccessReaderPromise(new SourceReader(source), source.size, options);
  } catch (error) {
    throw isReaderError(error) ? brokenZip(error.message, error) : error;
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
  const others: string[] = [];
  for await (const entry of zip.eachEntry()) {
    if (zip.entriesRead > MAX_MEMBERS) throw unsupported(`more than ${MAX_MEMBERS} members`);
    const name = nameOf(entry);
    if (name !== memberName) {
      others.push(name);
    } else if (found === undefined) {
      found = entryOf(entry);
    } else {
      throw brokenZip(`two members are named ${quoteMember(memberName)}`);
    }
  }
  if (found === undefined)
    throw brokenZip(`no member ${quoteMember(memberName)} in the zip; ${describeMembers(others)}`);
  return found;
}

/** The name in the Unicode path field of Info-ZIP (0x7075), else the raw name as UTF-8, even if the writer omitted the UTF-8 flag. */
function nameOf(entry: Entry): string {
  const flags = entry.generalPurposeBitFlag | FLAG_UTF8;
  return yauzl.getFileNameLowLevel(flags, entry.fileNameRaw, entry.extraFields, true);
}

function entryOf(entry: Entry): ZipEntry {
  return {
    name: entry.fileNameRaw,
    flags: entry.generalPurposeBitFlag,
    method: entry.compressionMethod,
    crc32: entry.crc32,
    compressedSize: entry.compressedSize,
    size: entry.uncompressedSize,
    offset: entry.relativeOffsetOfLocalHeader,
  };
}

function describeMembers(names: readonly string[]): string {
  if (names.length === 0) return 'it is empty';
  return `it holds ${listText(names.map(quoteMember), SHOWN_NAMES)}`;
}

function quoteMember(name: string): string {
  const cut = name.length > SHOWN_CHARACTERS ? `${name.slice(0, SHOWN_CHARACTERS)}…` : name;
  return `"${cut.replaceAll(/[\p{C}"]/gu, '?')}"`;
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
