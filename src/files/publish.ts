/** Publication of staged files: a file appears under its final name complete and synced, or not at all. */
import { backingOf } from './backing.js';
import { makeFolder, withFile } from './disk.js';
import { stagedBeside } from './temp-files.js';
import { errnoOf, unlessMissing, withPath } from '../model/errors.js';
import { createHash, randomUUID } from 'node:crypto';
import { constants, fstatSync, type Stats } from 'node:fs';
import { copyFile, lstat, rename, rm, writeFile, type FileHandle } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { entryAt, entryNow, openRegularFile } from './path-checks.js';

export interface Publication {
  readonly staged: string;
  readonly target: string;
}

/** Syncs the staged file, renames it over the target and syncs the target's directory. Both must be on one file system. */
export async function publish(staged: string, target: string): Promise<void> {
  await syncFile(staged);
  await renameAll([{ staged, target }]);
}

/** Writes a small file: staged in a folder of its file system, which may be missing, and published. After an error, nothing staged is left. */
export async function publishText(staging: string, target: string, text: string): Promise<void> {
  const staged = join(staging, `${randomUUID()}.partial`);
  try {
    await makeFolder(staging);
    await writeFile(staged, text);
    await publish(staged, target);
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

/** Renames synced files to their final names in the given order; each directory is synced once. */
export async function renameAll(publications: readonly Publication[]): Promise<void> {
  const folders = new Set<string>();
  for (const { staged, target } of publications) {
    const folder = dirname(target);
    if (!folders.has(folder)) for (const made of await makeFolder(folder)) folders.add(dirname(made));
    folders.add(folder);
    const backing = backingOf(target);
    backing?.refuseLost(target);
    await rename(staged, target);
    backing?.wrote(target);
  }
  await Promise.all([...folders].map((folder) => syncDirectory(folder)));
}

/** Creates a folder and its parents, and syncs their entries. */
export async function makeSyncedFolder(folder: string): Promise<void> {
  await Promise.all((await makeFolder(folder)).map((made) => syncDirectory(dirname(made))));
}

/**
 * Moves a file, also to another file system: there the copy is complete and synced before the file is removed. The caller
 * syncs the folder of the target.
 */
export async function moveFile(from: string, to: string): Promise<void> {
  backingOf(from)?.removes(from);
  try {
    await rename(from, to);
  } catch (error) {
    if (errnoOf(error) !== 'EXDEV') throw error;
    const staged = await stagedBeside(to);
    await copyFile(from, staged, constants.COPYFILE_EXCL);
    await publish(staged, to);
    await rm(from);
  }
}

/** Removes a file of a lake, which need not exist. A lake in a bucket loses no other files than those that are removed or moved here. */
export async function removeFile(path: string): Promise<void> {
  backingOf(path)?.removes(path);
  await rm(path, { force: true });
}

export async function syncAll(publications: readonly Publication[]): Promise<void> {
  await Promise.all(publications.map(({ staged }) => syncFile(staged)));
}

export async function removeStaged(publications: readonly Publication[]): Promise<void> {
  await Promise.all(publications.map(({ staged }) => rm(staged, { force: true })));
}

async function syncFile(path: string): Promise<void> {
  await withFile(path, 'r+', (file) => synced(file, path));
}

/** Syncs a directory. Ignores EINVAL, ENOTSUP and EISDIR: some file systems (network mounts) cannot sync directories. */
export async function syncDirectory(path: string): Promise<void> {
  await withFile(path, 'r', (directory) => synced(directory, path, ['EINVAL', 'ENOTSUP', 'EISDIR']));
}

async function synced(file: FileHandle, path: string, ignored: readonly string[] = []): Promise<void> {
  await file.sync().catch((error: unknown) => {
    if (!ignored.includes(errnoOf(error))) throw withPath(error, path);
  });
}

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
      for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, at + 1)) newlines += 1;
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
