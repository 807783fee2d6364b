/** Stubs: sparse files of the right size in place of files of the bucket. They take no blocks of the disk. */
import { closeSync, fstatSync, ftruncateSync, openSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolderSync } from '../files/disk.js';
import { errnoOf } from '../model/errors.js';

/** Creates a stub, and its folder if it is missing. Returns its stamp. Throws the error of the system, also if the path exists. */
export function writeStub(path: string, bytes: number): string {
  const fd = openNew(path);
  try {
    ftruncateSync(fd, bytes);
    return stampOf(fstatSync(fd));
  } finally {
    closeSync(fd);
  }
}

function openNew(path: string): number {
  try {
    return openSync(path, 'wx');
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
    makeFolderSync(dirname(path));
    return openSync(path, 'wx');
  }
}

/** Differs after each change of a file; undefined for a missing file and for anything but a regular file. */
export async function stampAt(path: string): Promise<string | undefined> {
  try {
    const facts = await lstat(path);
    return facts.isFile() ? stampOf(facts) : undefined;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return undefined;
    throw error;
  }
}

function stampOf({ ino, size, mtimeMs }: Stats): string {
  return `${ino}:${size}:${mtimeMs}`;
}
