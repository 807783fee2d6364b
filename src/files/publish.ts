/** Publication of staged files: a file appears under its final name complete and synced, or not at all. */
import { backingOf } from './backing.js';
import { makeFolder, withFile } from './disk.js';
import { stagedBeside } from './temp-files.js';
import { errnoOf, withPath } from '../model/errors.js';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, rename, rm, writeFile, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';

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

/** Moves a file, also to another file system: the synced copy is complete before the file is removed. The caller syncs the folder of the target. */
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
