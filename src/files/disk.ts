/** Creates folders without the recursive `mkdir`, which can loop forever, and writes chunks, also if a write stops early. */
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FileHandle } from 'node:fs/promises';
import { errnoOf } from '../model/errors.js';

/**
 * Replacement for `mkdir -p`: `mkdir` with `recursive: true` loops forever where the kernel answers ENOENT although the parent
 * exists, for example below /proc (Node 20 to 24). `mode` is that of the last folder. Rejects with the error of the system.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (await isFolder(path)) return;
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    try {
      await mkdir(path, { mode });
    } catch (again) {
      // Another process has created it in the meantime.
      if (!(await isFolder(path))) throw again;
    }
  }
}

/** The synchronous `makeFolder`. */
export function makeFolderSync(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if (isFolderSync(path)) return;
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    makeFolderSync(dirname(path));
    try {
      mkdirSync(path);
    } catch (again) {
      if (!isFolderSync(path)) throw again;
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}

function isFolderSync(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
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
