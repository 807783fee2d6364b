/** Texts that the user names, from files, pipes and standard input: lists, queries and settings. */
import { createReadStream } from 'node:fs';

/** A list of all symbols of an exchange has less than 1 MB. A device may never end. */
const MOST_BYTES = 64 * 1024 * 1024;

/** Rejects with errors of the system; with EFBIG for a longer text. */
export async function readText(source: string | AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of typeof source === 'string' ? createReadStream(source) : source) {
    const part = Buffer.from(chunk as Buffer);
    bytes += part.length;
    if (bytes > MOST_BYTES) throw Object.assign(new Error('too large'), { code: 'EFBIG' });
    chunks.push(part);
  }
  return Buffer.concat(chunks).toString('utf8');
}
