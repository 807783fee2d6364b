/** Sends an object: whole or in part. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { DigestCache, StoredObject } from './object-store.js';
import { etagOf, sidecarText, sizeOf, openObject, SIDECAR_SUFFIX } from './object-store.js';
import { sendRefusal } from './refusal.js';

/** Responds to GET and HEAD with 200, 206 or 416. */
export async function sendObject(
  request: IncomingMessage,
  response: ServerResponse,
  object: StoredObject,
  digests: DigestCache,
): Promise<void> {
  const size = sizeOf(object);
  const validators = {
    ETag: await etagOf(object, digests),
    'Last-Modified': object.stats.mtime.toUTCString(),
  };
  // The CDN of the archive ignores a range on HEAD (observed).
  const mayRange = request.method === 'GET' && rangeApplies(request.headers, validators);
  const range = mayRange ? readRange(request.headers.range, size) : undefined;
  if (range === 'unsatisfiable') {
    sendRefusal(response, 'InvalidRange', { headers: { 'Content-Range': `bytes */${size}` } });
    return;
  }
  const part = range ?? { first: 0, last: size - 1 };
  response.writeHead(range === undefined ? 200 : 206, {
    ...validators,
    'Accept-Ranges': 'bytes',
    'Content-Type':
      object.virtual || object.path.endsWith(SIDECAR_SUFFIX) ? 'binary/octet-stream' : 'application/zip',
    'Content-Length': part.last - part.first + 1,
    ...(range === undefined ? {} : { 'Content-Range': `bytes ${part.first}-${part.last}/${size}` }),
  });
  if (request.method === 'HEAD' || size === 0) response.end();
  else if (object.virtual)
    response.end(Buffer.from(await sidecarText(object, digests)).subarray(part.first, part.last + 1));
  else await stream(response, object, part);
}

/** About two chunks per connection are in memory. */
const CHUNK_BYTES = 64 * 1024;

/** Streams a part of a file. If the file becomes shorter during the response, the connection is closed before the end. */
async function stream(response: ServerResponse, object: StoredObject, part: ByteRange): Promise<void> {
  const opened = await openObject(object);
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

/** True when `Range` applies: the request has no `If-Range`, or one that names this revision. */
function rangeApplies(
  headers: IncomingHttpHeaders,
  validators: Readonly<Record<'ETag' | 'Last-Modified', string>>,
): boolean {
  const ifRange = headers['if-range'];
  return ifRange === undefined || ifRange === validators.ETag || ifRange === validators['Last-Modified'];
}
