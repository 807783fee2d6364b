/** Size, digest and lines of files of a lake. */
import { createHash } from 'node:crypto';
import { constants, fstatSync, type Stats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { unlessMissing } from '../model/errors.js';
import { entryAt, entryNow, openRegularFile } from './path-checks.js';
import { NEWLINE } from '../text/csv.js';

export interface FileFacts {
  readonly bytes: number;
  readonly sha256: string;
  readonly newlines: number;
}

const READ_BYTES = 1024 * 1024;

/** Reads a file once. Rejects with `disk` for anything but a regular file, and with the reason of the signal when it aborts. */
export async function fileFacts(path: string, signal?: AbortSignal): Promise<FileFacts> {
  const file = await openRegularFile(path, constants.O_RDONLY);
  const hash = createHash('sha256');
  // A large buffer for each small file would make V8 collect garbage more often.
  const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, fstatSync(file.fd).size + 1));
  let bytes = 0;
  let newlines = 0;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) return { bytes, sha256: hash.digest('hex'), newlines };
      const chunk = buffer.subarray(0, bytesRead);
      hash.update(chunk);
      bytes += bytesRead;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) newlines += 1;
    }
  } finally {
    await file.close();
  }
}

/** The size of a regular file in bytes; undefined for a missing file, a symbolic link and anything else. */
export const fileSize = async (path: string): Promise<number | undefined> => sizeOf(await entryAt(path));

/** After this many files, `fileSizes` gives other work a turn. */
const SIZES_AT_ONCE = 64;
/** A local file system needs about 0.2 ms for them. */
const SLOW_MS = 10;

/**
 * The sizes of files of a folder, as `fileSize` returns them. They are read in the main thread, because the way through the thread pool
 * takes ten times as much CPU time as the system call. From a slow file system, such as one of a network, they are read in the pool,
 * several at once.
 */
export async function fileSizes(folder: string, files: readonly string[]): Promise<(number | undefined)[]> {
  const sizes: (number | undefined)[] = [];
  let isSlow = false;
  for (let from = 0; from < files.length; from += SIZES_AT_ONCE) {
    const paths = files.slice(from, from + SIZES_AT_ONCE).map((file) => folder + sep + file);
    const started = performance.now();
    if (isSlow) sizes.push(...(await Promise.all(paths.map(sizeLater))));
    else for (const path of paths) sizes.push(sizeOf(entryNow(path)));
    isSlow ||= performance.now() - started > SLOW_MS;
    if (from + SIZES_AT_ONCE < files.length) await nextTurn();
  }
  return sizes;
}

const sizeLater = async (path: string): Promise<number | undefined> =>
  sizeOf(await unlessMissing(lstat(path), 'ENOTDIR'));

function sizeOf(facts: Stats | undefined): number | undefined {
  return facts?.isFile() === true ? facts.size : undefined;
}
