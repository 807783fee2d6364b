/** Reads the small files that all runs on one machine share. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

export const TOO_LARGE = 'too large';

/**
 * The content of a file in the state folder. Throws an error with code `TOO_LARGE` for a file above `maxBytes`. Throws also for anything
 * but a regular file, because reading a pipe without a writer would never end. The calls block, because a run reads such files by the hundred: they
 * take microseconds, and a round trip to the thread pool takes many times as long.
 */
export function readStateNow(path: string, maxBytes: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const facts = fstatSync(file);
    if (!facts.isFile()) throw refusal(path, 'not a regular file');
    if (facts.size > maxBytes) throw refusal(path, TOO_LARGE);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** Has a `code` like errors of the system, because warnings show the code. */
function refusal(path: string, code: string): Error {
  return Object.assign(new Error(`${path} is ${code}`), { code });
}
