import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Body } from '../fetch.js';
import { openSource } from './byte-source.js';
import { inflateChunks, inflateWhole } from './inflate.js';
import { checkEntry, checkRatio, locateData, MAX_DEFLATE_RATIO } from './zip-entry.js';
import { findEntry } from './zip-fallback.js';
import { readPlainEntry } from './zip-reader.js';

export interface UnzipOptions {
  /** Where a member larger than `memoryBytes` goes; the folder must exist, a leftover file is replaced. */
  readonly spoolPath: string;
  readonly memoryBytes: number;
  /** Hard cap of the unpacked size. */
  readonly maxBytes: number;
  /** Unpacked to packed, for members larger than `memoryBytes`. */
  readonly maxRatio?: number;
  /** Gets the chunks of a member larger than `memoryBytes`; what it throws ends the unpacking. */
  readonly look?: (chunk: Buffer) => void;
  readonly signal?: AbortSignal;
}

const WRITE_BUFFER_BYTES = 1024 * 1024;

/**
 * The root member `memberName` of the zip, unpacked: size, CRC-32 and both headers agree. Other members are ignored.
 * An empty member is an empty body in memory.
 *
 * Rejects with `zip-broken`, `zip-unsupported` or `zip-bomb`, with the signal's reason, or with Node's own disk error;
 * a half-written spool file is removed.
 */
export async function unzip(zip: Body, memberName: string, options: UnzipOptions): Promise<Body> {
  const { memoryBytes, maxBytes, maxRatio = MAX_DEFLATE_RATIO, look, spoolPath, signal } = options;
  signal?.throwIfAborted();
  const source = await openSource(zip);
  try {
    const entry = (await readPlainEntry(source, memberName)) ?? (await findEntry(source, memberName));
    checkEntry(entry, maxBytes);
    if (entry.size > memoryBytes) checkRatio(entry, maxRatio);
    const dataOffset = await locateData(source, entry);
    if (entry.size > memoryBytes) {
      const chunks = inflateChunks(source, entry, dataOffset);
      await spool(look === undefined ? chunks : looked(chunks, look), spoolPath, signal);
      return { kind: 'file', path: spoolPath, size: entry.size };
    }
    // A small member can hide behind a large packed size (empty deflate blocks).
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

async function* looked(chunks: AsyncIterable<Buffer>, look: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    look(chunk);
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
