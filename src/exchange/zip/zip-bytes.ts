/** The bytes of a zip in memory or in a file. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { bodySize, type Body } from '../../model/fetch.js';
import { brokenZip } from './zip-headers.js';

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
