/** A strict zip reader: unpacks one named member, in memory or to a file. */
import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Body } from '../../http/fetch.js';
import type { Packing, UnpackOptions } from '../../source/source.js';
import { inflateChunks, inflateWhole } from './inflate.js';
import { checkEntry, checkRatio, findMember, MAX_DEFLATE_RATIO, openSource } from './zip-entry.js';

const WRITE_BUFFER_BYTES = 1024 * 1024;

/**
 * Unpacks the member `memberName`, which is in no folder. Its local header must agree with the central directory, and its data must
 * have the size and CRC-32 of these headers. Other members are ignored. An empty member gives an empty body in memory.
 *
 * Rejects with `zip-broken`, `zip-unsupported` or `zip-bomb`, with the reason of the signal, or with a Node error of the disk. An incomplete file at `spoolPath` is removed.
 */
export async function unzip(zip: Body, memberName: string, options: UnpackOptions): Promise<Body> {
  const { memoryBytes, maxBytes, maxRatio = MAX_DEFLATE_RATIO, spoolPath, signal } = options;
  signal?.throwIfAborted();
  const source = await openSource(zip);
  try {
    const { entry, dataOffset } = await findMember(source, memberName, (found) => {
      checkEntry(found, maxBytes);
      checkRatio(found, found.uncompressedSize > memoryBytes ? maxRatio : MAX_DEFLATE_RATIO);
    });
    const size = entry.uncompressedSize;
    if (size > memoryBytes) {
      await spool(inflateChunks(source, entry, dataOffset), spoolPath, signal);
      return { kind: 'file', path: spoolPath, size };
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
