/** The headers and the body that an attempt sends. */
import type { FetchContext, FetchRequest, PartialBody } from '../fetch.js';
import { rangeHeaders } from './sink.js';
import type { Bandwidth } from './sockets.js';

export const USER_AGENT = 'cryptodl/0.1 (+bulk market data downloader)';

const CHUNK_BYTES = 64 * 1024;

export function headersOf(request: FetchRequest, partial: PartialBody | undefined): Record<string, string> {
  const caches = request.bypassCache === true ? { 'cache-control': 'no-cache', pragma: 'no-cache' } : {};
  const range = partial === undefined ? {} : rangeHeaders(partial);
  // With a known length, undici does not send the body in chunks, which S3 refuses.
  const length = request.sends === undefined ? {} : { 'content-length': String(request.sends.length) };
  return {
    'accept-encoding': 'identity',
    'user-agent': USER_AGENT,
    ...request.headers,
    ...caches,
    ...range,
    ...length,
  };
}

/** The chunks of a body: each is a sign of progress, and waits for the bandwidth. */
export async function* sentChunks(
  body: Buffer,
  bandwidth: Bandwidth,
  { onActivity }: Pick<FetchContext, 'onActivity'>,
): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) {
    const chunk = body.subarray(at, at + CHUNK_BYTES);
    const wait = bandwidth.take(chunk.length);
    if (wait !== undefined) {
      onActivity?.('paused');
      await wait;
    }
    onActivity?.('uploading', chunk.length);
    yield chunk;
  }
}
