/** Random access to the bytes of a zip. */
import { open } from 'node:fs/promises';
import { CryptodlError } from '../../model/errors.js';
import type { Body } from '../../http/fetch.js';

/** A body in memory or on disk that is read by position. */
export interface ByteSource {
  readonly size: number;
  /** Exactly `length` bytes; rejects with `zip-broken` beyond the end. Bytes in memory are not copied. */
  read(position: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

const PIECE_BYTES = 256 * 1024;

/** Opens a body; the caller must close it. Rejects with the Node error of `open`. */
export async function openSource(body: Body): Promise<ByteSource> {
  if (body.kind === 'memory') {
    const { bytes } = body;
    return {
      size: bytes.length,
      read: (position, length) =>
        new Promise((resolve) => {
          assertInside(position, length, bytes.length);
          resolve(bytes.subarray(position, position + length));
        }),
      close: () => Promise.resolve(),
    };
  }
  const { path, size } = body;
  const handle = await open(path, 'r');
  return {
    size,
    read: async (position, length) => {
      assertInside(position, length, size);
      const buffer = Buffer.allocUnsafe(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(buffer, filled, length - filled, position + filled);
        if (bytesRead === 0) throw cutError(position + filled, length - filled);
        filled += bytesRead;
      }
      return buffer;
    },
    close: () => handle.close(),
  };
}

/** `length` bytes from `position` on, in pieces of 256 KiB. */
export async function* pieces(source: ByteSource, position: number, length: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < length; done += PIECE_BYTES) {
    yield await source.read(position + done, Math.min(PIECE_BYTES, length - done));
  }
}

function assertInside(position: number, length: number, size: number): void {
  // Positions come from headers of the zip: any 64-bit number, inexact beyond 2^53.
  if (!Number.isSafeInteger(position) || position < 0 || position + length > size)
    throw cutError(position, length);
}

function cutError(position: number, length: number): CryptodlError {
  return new CryptodlError('zip-broken', `the zip is truncated: ${length} bytes are missing at ${position}`);
}
