/** Finds and opens the files of objects, inside `data/` only and never through symbolic links; their ETags, sidecars and sizes. */
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../model/errors.js';

/** Suffix of the file that holds an object's SHA-256. */
export const SIDECAR_SUFFIX = '.CHECKSUM';

/** Only files in this folder are objects. */
export const TOP_FOLDER = 'data';

/** The file of an object. `virtual`: the object is the sidecar of the file, and has no file itself. */
export interface StoredObject {
  readonly path: string;
  readonly stats: BigIntStats;
  readonly virtual: boolean;
}

/** True for a file or folder name that may be a part of a key. Hidden names and names with a separator may not. */
export function isKeyPart(name: string): boolean {
  return name !== '' && !name.startsWith('.') && !/[\0\\/]/.test(name);
}

/** The path of a key (without trailing slash); undefined outside `data/`, and for a hidden or empty part. */
export function pathOfKey(root: string, key: string): string | undefined {
  const parts = key.split('/');
  if (parts[0] !== TOP_FOLDER || !parts.every(isKeyPart)) return undefined;
  return join(root, ...parts);
}

/** The object with this key, or undefined. `root` must be a real path without symbolic links. */
export async function findObject(root: string, key: string): Promise<StoredObject | undefined> {
  const path = pathOfKey(root, key);
  if (path === undefined || !key.includes('/')) return undefined;
  const stats = await regularFile(path);
  if (stats !== undefined) return { path, stats, virtual: false };
  const base = path.slice(0, -SIDECAR_SUFFIX.length);
  if (!path.endsWith(SIDECAR_SUFFIX) || !mayHaveSidecar(base)) return undefined;
  const baseStats = await regularFile(base);
  return baseStats === undefined ? undefined : { path: base, stats: baseStats, virtual: true };
}

/** True unless the file is a sidecar itself. */
export function mayHaveSidecar(name: string): boolean {
  return !name.endsWith(SIDECAR_SUFFIX);
}

/** Status of a regular file. Undefined without one, or when the path has a symbolic link, which could lead out of the root. */
async function regularFile(path: string): Promise<BigIntStats | undefined> {
  return missingAsUndefined(async () => {
    const stats = await lstat(path, { bigint: true });
    return stats.isFile() && (await realpath(path)) === path ? stats : undefined;
  });
}

/**
 * Opens the file of an object. Rejects with ELOOP when the path has a symbolic link, which may have been made since the
 * object was found.
 */
export async function openObject({ path }: Pick<StoredObject, 'path'>): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    if ((await openedPath(file, path)) === path) return file;
    throw Object.assign(new Error(`${path} is reached by a symbolic link`), { code: 'ELOOP' });
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Path of the opened file. Linux gives it for the open file; on other systems the name is resolved again. */
async function openedPath(file: FileHandle, path: string): Promise<string | undefined> {
  if (process.platform === 'linux') return readlink(`/proc/self/fd/${file.fd}`);
  const [opened, named] = await Promise.all([file.stat({ bigint: true }), stat(path, { bigint: true })]);
  return opened.dev === named.dev && opened.ino === named.ino ? realpath(path) : undefined;
}

const MISSING = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP']);

/** Runs a file system call. Resolves with undefined when the file does not exist; rejects with other errors. */
export async function missingAsUndefined<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    const code = error instanceof Error ? errnoOf(error) : undefined;
    if (code !== undefined && MISSING.has(code)) return undefined;
    throw error;
  }
}
