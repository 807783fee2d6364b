/** A strict zip reader: unpacks one named member, in memory or to a file. */
import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Body } from '../../http/fetch.js';
import type { Packing, UnpackOptions } from '../../source/source.js';
import { inflateChunks, inflateWhole } from './inflate.js';
import {
  checkEntry,
  checkRatio,
  locateData,
  MAX_DEFLATE_RATIO,
  MAX_UINT32,
  openSource,
} from './zip-entry.js';
import type { ByteSource, ZipEntry } from './zip-entry.js';
import { findEntry } from './zip-fallback.js';

const WRITE_BUFFER_BYTES = 1024 * 1024;

/**
 * Unpacks the member `memberName`, which is in no folder. Its local header must agree with the central directory, and its data must
 * have the size and CRC-32 of these headers. Other members are ignored. An empty member gives an empty body in memory.
 *
 * Rejects with `zip-broken`, `zip-unsupported` or `zip-bomb`, with the error of `onChunk`, with the reason of the signal, or with a Node
 * error of the disk. An incomplete file at `spoolPath` is removed.
 */
export async function unzip(zip: Body, memberName: string, options: UnpackOptions): Promise<Body> {
  const { memoryBytes, maxBytes, maxRatio = MAX_DEFLATE_RATIO, onChunk, spoolPath, signal } = options;
  signal?.throwIfAborted();
  const source = await openSource(zip);
  try {
    const entry = (await readPlainEntry(source, memberName)) ?? (await findEntry(source, memberName));
    checkEntry(entry, maxBytes);
    if (entry.size > memoryBytes) checkRatio(entry, maxRatio);
    const dataOffset = await locateData(source, entry);
    if (entry.size > memoryBytes) {
      const chunks = inflateChunks(source, entry, dataOffset);
      await spool(onChunk === undefined ? chunks : observed(chunks, onChunk), spoolPath, signal);
      return { kind: 'file', path: spoolPath, size: entry.size };
    }
    // The packed data of a small member can be large: deflate allows any number of empty blocks.
    const packedFits = entry.compressedSize <= memoryBytes;
    const bytes = packedFits
      ? await inflateWhole(source, entry, dataOffset)
      : await collect(inflateChunks(source, entry, dataOffset), signal);
    signal?.throwIfAborted();
    return { kind: 'memory', bytes };
  } finally {
    await source.close();
  }
}

async function collect(chunks: AsyncIterable<Buffer>, signal: AbortSignal | undefined): Promise<Buffer> {
  const collected: Buffer[] = [];
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    collected.push(chunk);
  }
  return Buffer.concat(collected);
}

async function* observed(
  chunks: AsyncIterable<Buffer>,
  onChunk: (chunk: Buffer) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    onChunk(chunk);
    yield chunk;
  }
}

async function spool(
  chunks: AsyncIterable<Buffer>,
  path: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const handle = await open(path, 'w');
  try {
    const target = handle.createWriteStream({ highWaterMark: WRITE_BUFFER_BYTES });
    await pipeline(chunks, target, signal === undefined ? {} : { signal });
    await handle.close();
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(path, { force: true }).catch(() => undefined);
    signal?.throwIfAborted();
    throw error;
  }
}

const END_BYTES = 22;
const CENTRAL_BYTES = 46;
const LOCAL_BYTES = 30;
const MAX_CENTRAL_BYTES = CENTRAL_BYTES + 3 * 0xffff;
/** Deflate effort (bits 1 and 2) and UTF-8 name (bit 11) do not change how a member is read; any other bit may. */
const HARMLESS_FLAGS = 0x0806;

/**
 * The only entry of a zip with the usual layout of the archive: one member with the given name, no ZIP64, no data descriptor, no
 * comment of the zip, no bytes before the member, and only the end record after its directory entry. Undefined for any other layout,
 * also a broken one; the fallback then reads the zip and reports its error. For a small file, yauzl takes twice as long (0.10
 * instead of 0.05 ms).
 */
async function readPlainEntry(source: ByteSource, memberName: string): Promise<ZipEntry | undefined> {
  const name = Buffer.from(memberName);
  if (source.size < END_BYTES + CENTRAL_BYTES + LOCAL_BYTES) return undefined;
  const endOffset = source.size - END_BYTES;
  const directory = parseEndRecord(await source.read(endOffset, END_BYTES));
  if (directory === undefined || directory.offset + directory.size !== endOffset) return undefined;
  if (directory.size < CENTRAL_BYTES || directory.size > MAX_CENTRAL_BYTES) return undefined;
  const entry = parseEntry(await source.read(directory.offset, directory.size));
  if (entry === undefined || entry.offset !== 0 || !entry.name.equals(name)) return undefined;
  const ordinary = (entry.flags & ~HARMLESS_FLAGS) === 0;
  const small = entry.size < MAX_UINT32 && entry.compressedSize < MAX_UINT32;
  return ordinary && small ? entry : undefined;
}

function parseEndRecord(end: Buffer): { offset: number; size: number } | undefined {
  if (end.readUInt32LE(0) !== 0x06054b50) return undefined;
  const disks = end.readUInt16LE(4) + end.readUInt16LE(6);
  const oneEntry = end.readUInt16LE(8) === 1 && end.readUInt16LE(10) === 1;
  if (disks !== 0 || !oneEntry || end.readUInt16LE(20) !== 0) return undefined;
  return { size: end.readUInt32LE(12), offset: end.readUInt32LE(16) };
}

function parseEntry(header: Buffer): ZipEntry | undefined {
  if (header.readUInt32LE(0) !== 0x02014b50) return undefined;
  const nameLength = header.readUInt16LE(28);
  const rest = nameLength + header.readUInt16LE(30) + header.readUInt16LE(32);
  if (CENTRAL_BYTES + rest !== header.length || header.readUInt16LE(34) !== 0) return undefined;
  return {
    name: header.subarray(CENTRAL_BYTES, CENTRAL_BYTES + nameLength),
    flags: header.readUInt16LE(8),
    method: header.readUInt16LE(10),
    crc32: header.readUInt32LE(16),
    compressedSize: header.readUInt32LE(20),
    size: header.readUInt32LE(24),
    offset: header.readUInt32LE(42),
  };
}

/** The longest tail that can hold the end record: 22 bytes and a comment of 65,535. */
const TAIL_BYTES = END_BYTES + 0xffff;

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
