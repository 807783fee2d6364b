/** The headers and the body that an attempt sends. */
import type { FetchContext, FetchRequest, PartialBody } from '../../model/fetch.js';
import type { Bandwidth } from './bandwidth.js';

export const USER_AGENT = 'cryptodl/0.1 (+bulk market data downloader)';

export function headersOf(request: FetchRequest, partial: PartialBody | undefined): Record<string, string> {
  const caches = request.bypassCache === true ? { 'cache-control': 'no-cache', pragma: 'no-cache' } : {};
  const range = partial === undefined ? {} : { range: `bytes=${partial.bytes}-`, 'if-range': partial.etag };
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
  tell: NonNullable<FetchContext['onActivity']>,
): AsyncGenerator<Buffer> {
  const chunkBytes = 64 * 1024;
  for (let at = 0; at < body.length; at += chunkBytes) {
    const chunk = body.subarray(at, at + chunkBytes);
    const wait = bandwidth.take(chunk.length);
    if (wait !== undefined) {
      tell('paused');
      await wait;
    }
    tell('uploading', chunk.length);
    yield chunk;
  }
}
