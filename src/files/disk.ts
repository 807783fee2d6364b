/** Folders and files: folders are made without the recursive `mkdir`, which can loop forever. Chunks are written also if a write stops early. */
import {
  existsSync,
  mkdirSync,
  statSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
} from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errnoOf } from '../model/errors.js';

/**
 * Replacement for `mkdir -p`: `mkdir` with `recursive: true` loops forever where the kernel answers ENOENT although the parent
 * exists, for example below /proc (Node 20 to 24). `mode` is that of the last folder. Returns the folders that it has made. Throws the error of the
 * system.
 */
export function makeFolderSync(path: string, mode = 0o777): string[] {
  let made: string[] = [];
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (isFolder(path)) return [];
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    made = makeFolderSync(dirname(path));
    try {
      mkdirSync(path, { mode });
    } catch (again) {
      // Another process has created it in the meantime.
      if (isFolder(path)) return made;
      throw again;
    }
  }
  return [...made, path];
}

/** `makeFolderSync` that rejects. A few calls of the system are no reason to do it twice, in two ways. */
export function makeFolder(path: string, mode?: number): Promise<string[]> {
  return new Promise((resolve) => resolve(makeFolderSync(path, mode)));
}

function isFolder(path: string): boolean {
  // `existsSync` does not throw where a parent cannot be entered.
  return existsSync(path) && statSync(path).isDirectory();
}

/** Opens a file, and closes it when `act` has ended. */
export async function withFile<T>(
  path: string,
  flags: string,
  act: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags);
  try {
    return await act(file);
  } finally {
    await file.close();
  }
}

/** Writes all chunks from byte `from` on, in one system call if possible. Rejects with the error of the system. */
export async function writeAllChunks(
  file: FileHandle,
  chunks: readonly Buffer[],
  from: number,
): Promise<void> {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (length === 0) return;
  const { bytesWritten } = await file.writev(chunks, from);
  if (bytesWritten === length) return;
  // POSIX allows a write to stop early.
  const all = Buffer.concat(chunks);
  for (let at = bytesWritten; at < length;)
    at += (await file.write(all, at, length - at, from + at)).bytesWritten;
}

export const TOO_LARGE = 'too large';

/**
 * The content of a small file in the state folder, which all runs of a machine share. Throws an error with code `TOO_LARGE` for a file above `maxBytes`. Throws also for anything
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
const refusal = (path: string, code: string): Error =>
  Object.assign(new Error(`${path} is ${code}`), { code });
