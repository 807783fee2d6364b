/** What a lake says of its own files, and the folders it consists of, never lead out of it. */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { shownPath } from '../text/paths.js';
import type { Format } from '../model/task.js';

/** The name of one file or folder. */
export function isPlainName(name: unknown): name is string {
  return typeof name === 'string' && name !== '' && !name.startsWith('.') && !/[/\\\0]/.test(name);
}

const PARTITION = /^\d{4}-\d{2}(-\d{2})?\.(parquet|csv)$/;

/** The name of a partition file, in the folder of its series. */
export function isPartitionFile(name: unknown): name is string {
  return typeof name === 'string' && PARTITION.test(name);
}

/** What a manifest line may call its file: a partition of the series, or for zip a key of the archive. */
export function isManifestFile(format: Format, file: unknown): file is string {
  if (format !== 'zip') return isPartitionFile(file);
  return typeof file === 'string' && file.startsWith('data/') && file.split('/').every(isPlainName);
}

/** The first symbolic link on the way from the root, which may be one itself, to a place below it; undefined when there is none. */
export async function firstSymlink(root: string, place: string): Promise<string | undefined> {
  const names = place.split('/');
  const places = names.map((_, index) => names.slice(0, index + 1).join('/'));
  const isLink = await Promise.all(places.map((one) => isLinkAt(join(root, one))));
  return places.find((_, index) => isLink[index]);
}

async function isLinkAt(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return false;
    throw error;
  }
}

/** The path of a folder of the lake, which need not be there yet. Rejects when a symbolic link is on the way to it. */
export async function checkedFolder(root: string, place: string): Promise<string> {
  const link = await firstSymlink(root, place);
  if (link !== undefined) throw symlinkError(join(root, link));
  return join(root, place);
}

/** The same, with one look per folder: for the files of one commit. */
export function cachedFolderCheck(root: string): (place: string) => Promise<string> {
  const known = new Map<string, Promise<string>>();
  return (place) => {
    const path = known.get(place) ?? checkedFolder(root, place);
    known.set(place, path);
    return path;
  };
}

/** Opens a file of the lake, but not what a symbolic link in its place leads to, and no pipe, device or folder. */
export async function openRegularFile(path: string, flags: number): Promise<FileHandle> {
  let file;
  try {
    // Without it, the open of a pipe waits for its other end.
    file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) === 'ELOOP') throw symlinkError(path);
    throw ['EISDIR', 'ENXIO'].includes(errnoOf(error)) ? notRegularError(path) : error;
  }
  const isFile = (await file.stat()).isFile();
  if (isFile) return file;
  await file.close();
  throw notRegularError(path);
}

function notRegularError(path: string): CryptodlError {
  return new CryptodlError('disk', `${shownPath(path)} is no regular file`, {
    hint: 'move it away; cryptodl verify tells what the lake then lacks',
  });
}

/** The whole text of a file of the lake; undefined when there is none. */
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

export function symlinkMessage(path: string): string {
  return `${shownPath(path)} is a symbolic link, which is not followed inside a lake`;
}

function symlinkError(path: string): CryptodlError {
  return new CryptodlError('disk', symlinkMessage(path), {
    hint: 'put the folder or file itself there, or mount it there; only --out itself may be a link',
  });
}
