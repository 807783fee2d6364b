/** Sends an object, or a part of it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { sendRefusal } from './s3-xml.js';
import { DigestCache, etagOf, sidecarText, sizeOf, openObject, SIDECAR_SUFFIX } from './object-store.js';
import type { StoredObject } from './object-store.js';

/** Responds to GET and HEAD with 200, 206 or 416. */
export async function sendObject(
  request: IncomingMessage,
  response: ServerResponse,
  stored: StoredObject,
  digests: DigestCache,
): Promise<void> {
  const size = sizeOf(stored);
  const validators = {
    ETag: await etagOf(stored, digests),
    'Last-Modified': stored.stats.mtime.toUTCString(),
  };
  const { range: asked, 'if-range': revision = validators.ETag } = request.headers;
  const isCurrent = revision === validators.ETag || revision === validators['Last-Modified'];
  // The CDN of the archive ignores a range on HEAD (observed).
  const range = request.method === 'GET' && isCurrent ? readRange(asked, size) : undefined;
  if (range === 'unsatisfiable') {
    sendRefusal(response, 'InvalidRange', { headers: { 'Content-Range': `bytes */${size}` } });
    return;
  }
  const part = range ?? { first: 0, last: size - 1 };
  response.writeHead(range === undefined ? 200 : 206, {
    ...validators,
    'Accept-Ranges': 'bytes',
    'Content-Type':
      stored.virtual || stored.path.endsWith(SIDECAR_SUFFIX) ? 'binary/octet-stream' : 'application/zip',
    'Content-Length': part.last - part.first + 1,
    ...(range === undefined ? {} : { 'Content-Range': `bytes ${part.first}-${part.last}/${size}` }),
  });
  if (request.method === 'HEAD' || size === 0) response.end();
  else if (stored.virtual)
    response.end(Buffer.from(await sidecarText(stored, digests)).subarray(part.first, part.last + 1));
  else await stream(response, stored, part);
}

/** About two chunks per connection are in memory. */
const CHUNK_BYTES = 64 * 1024;

/** Streams a part of a file. If the file becomes shorter during the response, the connection is closed before the end. */
async function stream(response: ServerResponse, stored: StoredObject, part: ByteRange): Promise<void> {
  const opened = await openObject(stored);
  const file = opened.createReadStream({ start: part.first, end: part.last, highWaterMark: CHUNK_BYTES });
  await pipeline(file, response, { end: false });
  if (file.bytesRead === part.last - part.first + 1) response.end();
  else response.destroy();
}

/** Part of an object; both ends are included, as in the `Content-Range` header. */
interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Reads a `Range` header for an object of `size` bytes (RFC 9110, 14.2).
 * Undefined if the header is not one well-formed byte range; a server ignores such a header.
 */
function readRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '');
  const [from, to] = [match?.[1] ?? '', match?.[2] ?? ''];
  if (match === null || (from === '' && to === '')) return undefined;
  if (from === '') {
    const length = Math.min(Number(to), size);
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 };
  }
  const first = Number(from);
  if (to !== '' && Number(to) < first) return undefined;
  if (first >= size) return 'unsatisfiable';
  return { first, last: to === '' ? size - 1 : Math.min(Number(to), size - 1) };
}
