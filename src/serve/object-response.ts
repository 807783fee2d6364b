import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';

import { type ByteRange, readRange } from './byte-range.js';
import { type Validators, isNotModified, rangeApplies } from './conditions.js';
import { type DigestCache, etagOf, sidecarText, sizeOf } from './etags.js';
import { openObject, SIDECAR_SUFFIX, type StoredObject } from './object-store.js';
import { sendRefusal } from './refusal.js';

/** Answers GET and HEAD of an object: 200, 206, 304 or 416 (facts: vision-archive.md 3.4). */
export async function sendObject(
  request: IncomingMessage,
  response: ServerResponse,
  object: StoredObject,
  digests: DigestCache,
): Promise<void> {
  const size = sizeOf(object);
  const validators: Validators = {
    etag: await etagOf(object, digests),
    lastModified: object.stats.mtime.toUTCString(),
  };
  const headers = {
    ETag: validators.etag,
    'Last-Modified': validators.lastModified,
    'Accept-Ranges': 'bytes',
  };
  if (isNotModified(request.headers, validators)) {
    response.writeHead(304, headers).end();
    return;
  }
  // A range on HEAD is ignored, as the archive's CDN was seen to do.
  const mayRange = request.method === 'GET' && rangeApplies(request.headers, validators);
  const range = mayRange ? readRange(request.headers.range, size) : undefined;
  if (range === 'unsatisfiable') {
    const message = 'The requested range is not satisfiable';
    const unsatisfied = { 'Content-Range': `bytes */${size}` };
    sendRefusal(response, { status: 416, refusal: 'InvalidRange', message, headers: unsatisfied });
    return;
  }
  const part = range ?? { first: 0, last: size - 1 };
  response.writeHead(range === undefined ? 200 : 206, {
    ...headers,
    'Content-Type': contentType(object),
    'Content-Length': part.last - part.first + 1,
    ...(range === undefined ? {} : { 'Content-Range': `bytes ${part.first}-${part.last}/${size}` }),
  });
  if (request.method === 'HEAD' || size === 0) response.end();
  else if (object.virtual) response.end(slice(await sidecarText(object, digests), part));
  else await stream(response, object, part);
}

function contentType(object: StoredObject): string {
  return object.virtual || object.path.endsWith(SIDECAR_SUFFIX) ? 'binary/octet-stream' : 'application/zip';
}

function slice(text: string, part: ByteRange): Buffer {
  return Buffer.from(text).subarray(part.first, part.last + 1);
}

/** What waits in memory for each reader is about two of them. */
const CHUNK_BYTES = 64 * 1024;

/** Streams a part of a file; a file cut short meanwhile cuts the connection, so that nobody takes it for whole. */
async function stream(response: ServerResponse, object: StoredObject, part: ByteRange): Promise<void> {
  const opened = await openObject(object);
  const file = opened.createReadStream({ start: part.first, end: part.last, highWaterMark: CHUNK_BYTES });
  await pipeline(file, response, { end: false });
  if (file.bytesRead === part.last - part.first + 1) response.end();
  else response.destroy();
}
