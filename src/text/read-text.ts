/** Texts that the user names, from files, pipes and standard input: lists, queries and settings. */
import { createReadStream } from 'node:fs';
import { unreadable } from './path-faults.js';

/** A list of all symbols of an exchange has less than 1 MB. A device may never end. */
const MOST_BYTES = 64 * 1024 * 1024;

/** The text of a file. Rejects with a usage error. `where`: the flag or argument that names the file. */
export async function readTextFile(path: string, where: string, hint: string): Promise<string> {
  try {
    return await readText(createReadStream(path));
  } catch (error) {
    throw unreadable(where, path, error, hint);
  }
}

/** Rejects with errors of the system; with EFBIG for a longer text. */
export async function readText(source: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    const part = Buffer.from(chunk as Buffer);
    bytes += part.length;
    if (bytes > MOST_BYTES) throw Object.assign(new Error('too large'), { code: 'EFBIG' });
    chunks.push(part);
  }
  return Buffer.concat(chunks).toString('utf8');
}
