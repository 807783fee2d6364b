/** A strict zip reader: unpacks one named member, in memory or to a file. */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Body } from '../../model/fetch.js';
import type { Packing, UnpackOptions } from '../exchange.js';
import { findMember } from './zip-entry.js';
import { MAX_DEFLATE_RATIO, checkEntry, checkRatio } from './zip-headers.js';
import { inflateWhole, inflateChunks } from './inflate.js';

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
