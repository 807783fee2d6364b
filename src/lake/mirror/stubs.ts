/** Stubs: sparse files of the right size in place of bytes that are in the bucket. */
import { closeSync, fstatSync, ftruncateSync, openSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolderSync } from '../../files/disk.js';
import { entryNow } from '../../files/path-checks.js';
import { errnoOf } from '../../model/errors.js';

export function stampAt(path: string): string | undefined {
  const entry = entryNow(path);
  return entry?.isFile() === true ? stampIn(entry) : undefined;
}

function stampIn({ ino, size, mtimeMs }: Stats): string {
  return `${ino}:${size}:${mtimeMs}`;
}

/** Creates a stub, and its folder if it is missing. Returns its stamp. Throws the error of the system, also if the path exists. */
export function writeStub(path: string, bytes: number): string {
  const fd = openNew(path);
  try {
    ftruncateSync(fd, bytes);
    return stampIn(fstatSync(fd));
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
