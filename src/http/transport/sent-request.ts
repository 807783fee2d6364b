/** The headers and the body that an attempt sends. */
import { open } from 'node:fs/promises';
import { CryptodlError } from '../../model/errors.js';
import type { FetchContext, FetchRequest, PartialBody, SentBody } from '../fetch.js';
import { rangeHeaders } from './sink.js';
import type { Bandwidth } from './sockets.js';

export const USER_AGENT = 'cryptodl/0.1 (+bulk market data downloader)';

const CHUNK_BYTES = 64 * 1024;

export function headersOf(request: FetchRequest, partial: PartialBody | undefined): Record<string, string> {
  const caches = request.bypassCache === true ? { 'cache-control': 'no-cache', pragma: 'no-cache' } : {};
  const range = partial === undefined ? {} : rangeHeaders(partial);
  // With a known length, undici does not send the body in chunks, which S3 refuses.
  const length = request.sends?.kind === 'file' ? { 'content-length': String(request.sends.size) } : {};
  return {
    'accept-encoding': 'identity',
    'user-agent': USER_AGENT,
    ...request.headers,
    ...caches,
    ...range,
    ...length,
  };
}

/** The chunks of a range of a file. `onError` gets an error of the disk before the chunks end with it. */
export async function* sentChunks(
  { path, from, size }: Extract<SentBody, { readonly kind: 'file' }>,
  bandwidth: Bandwidth,
  { onActivity }: Pick<FetchContext, 'onActivity'>,
  onError: (error: unknown) => void,
): AsyncGenerator<Buffer> {
  try {
    const file = await open(path, 'r');
    try {
      for (let sent = 0; sent < size;) {
        const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - sent));
        const { bytesRead } = await file.read(buffer, 0, buffer.length, from + sent);
        if (bytesRead === 0) throw new CryptodlError('disk', `${path} became shorter while it was sent`);
        const wait = bandwidth.take(bytesRead);
        if (wait !== undefined) {
          onActivity?.('paused');
          await wait;
        }
        onActivity?.('uploading', bytesRead);
        yield buffer.subarray(0, bytesRead);
        sent += bytesRead;
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    onError(error);
    throw error;
  }
}
