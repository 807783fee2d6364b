/** A file of the state folder, whole. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

export const TOO_LARGE = 'too large';

/** Rejects for a larger file, and for what is no regular file: the end of a pipe without a writer never comes. */
export async function readState(path: string, maxBytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const facts = await file.stat();
    if (!facts.isFile()) throw refusal(path, 'not a regular file');
    if (facts.size > maxBytes) throw refusal(path, TOO_LARGE);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Like an error of the system: warnings name the code. */
function refusal(path: string, code: string): Error {
  return Object.assign(new Error(`${path} is ${code}`), { code });
}
