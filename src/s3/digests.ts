/** Digests of a range of a file. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

export interface Digests {
  /** Hex. */
  readonly sha256: string;
  /** Base64, as Content-MD5 has it. */
  readonly md5: string;
}

export async function digestsOf(path: string, from: number, size: number): Promise<Digests> {
  const sha256 = createHash('sha256');
  const md5 = createHash('md5');
  if (size > 0) {
    const chunks = createReadStream(path, { start: from, end: from + size - 1, highWaterMark: 1024 * 1024 });
    for await (const chunk of chunks as AsyncIterable<Buffer>) {
      sha256.update(chunk);
      md5.update(chunk);
    }
  }
  return { sha256: sha256.digest('hex'), md5: md5.digest('base64') };
}
