/** Path checks: file names from a lake and symbolic links below its root never lead outside the lake. */
import { closeSync, constants, fstatSync, lstatSync, openSync, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { memoized } from '../model/by-name.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { shownPath } from '../text/printable.js';
import { bringIn } from './backing.js';

/** Whether a name is a single path component that does not begin with a dot. */
export const isPlainName = (name: unknown): name is string =>
  typeof name === 'string' && name !== '' && !name.startsWith('.') && !/[/\\\0]/.test(name);

const PARTITION = /^\d{4}-\d{2}(-\d{2})?\.(parquet|csv)$/;

/** Whether a name is that of a partition file, for example `2024-01.parquet`. */
export const isPartitionFile = (name: unknown): name is string =>
  typeof name === 'string' && PARTITION.test(name);

/** The first symbolic link on a path relative to the root, its end included; undefined without one. The root may be a link. */
export function firstSymlink(root: string, path: string): string | undefined {
  for (let end = path.indexOf('/'); ; end = path.indexOf('/', end + 1)) {
    const part = end === -1 ? path : path.slice(0, end);
    const entry = entryNow(join(root, part));
    if (entry?.isSymbolicLink() === true) return part;
    // Below a missing folder there is nothing.
    if (entry === undefined || end === -1) return undefined;
  }
}

/**
 * The facts of a file, folder or symbolic link itself; undefined if it does not exist. The call blocks, because it takes microseconds, and a
 * round trip to the thread pool takes many times as long.
 */
export function entryAt(path: string): Promise<Stats | undefined> {
  return new Promise((resolve) => resolve(entryNow(path)));
}

/** The same without a promise. */
export function entryNow(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** The path of a folder of the lake, which need not exist. Rejects with `disk` when the path contains a symbolic link. */
export function checkedFolder(root: string, path: string): Promise<string> {
  return new Promise((resolve) => {
    const link = firstSymlink(root, path);
    if (link !== undefined) throw symlinkError(join(root, link));
    resolve(join(root, path));
  });
}

/** The same with a cache, for the files of one commit. */
export function cachedFolderCheck(root: string): (path: string) => Promise<string> {
  const once = memoized<string>();
  return (path) => once(path, () => checkedFolder(root, path));
}

/** Without O_NONBLOCK, opening a pipe waits for its other end. */
const OPEN_FLAGS = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Opens a regular file of the lake. Rejects with `disk` for a symbolic link, pipe, device or folder. */
export async function openRegularFile(path: string, flags: number): Promise<FileHandle> {
  await bringIn(path);
  const file = await open(path, flags | OPEN_FLAGS).catch((error: unknown) => {
    throw openError(path, error);
  });
  if (fstatSync(file.fd).isFile()) return file;
  await file.close();
  throw notRegularError(path);
}

/** Opens a regular file for reading, like `openRegularFile`. Resolves with its descriptor. Blocks, like `entryAt`. */
export async function openForReading(path: string): Promise<number> {
  await bringIn(path);
  let file;
  try {
    file = openSync(path, constants.O_RDONLY | OPEN_FLAGS);
  } catch (error) {
    throw openError(path, error);
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw notRegularError(path);
}

function openError(path: string, error: unknown): unknown {
  if (errnoOf(error) === 'ELOOP') return symlinkError(path);
  return ['EISDIR', 'ENXIO'].includes(errnoOf(error)) ? notRegularError(path) : error;
}

/** Whether an entry is neither a regular file nor a symbolic link: a pipe, a socket, a device or a folder. */
export const isIrregular = (entry: Stats | undefined): boolean =>
  entry !== undefined && !entry.isFile() && !entry.isSymbolicLink();

/** Rejects with `disk` for a pipe, socket or device, which a rename would replace. A missing file is no error. */
export async function refuseIrregular(path: string): Promise<void> {
  const entry = await entryAt(path);
  if (entry?.isDirectory() !== true && isIrregular(entry)) throw notRegularError(path);
}

function notRegularError(path: string): CryptodlError {
  return new CryptodlError('disk', `${shownPath(path)} is not a regular file`, {
    hint: 'move it away; cryptodl verify then lists the files that no manifest line names',
  });
}

/** The text of a file of the lake; undefined when it does not exist. Rejects like `openRegularFile`. */
export async function readRegularFile(path: string): Promise<string | undefined> {
  let file;
  try {
    file = await openRegularFile(path, constants.O_RDONLY);
    return await file.readFile('utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return undefined;
    throw error;
  } finally {
    await file?.close();
  }
}

export const symlinkMessage = (path: string): string =>
  `${shownPath(path)} is a symbolic link; links below the lake or the target are not followed`;

function symlinkError(path: string): CryptodlError {
  return new CryptodlError('disk', symlinkMessage(path), {
    hint: 'replace the link by the folder or file itself, or by a mount; only --out and --target themselves may be links',
  });
}
