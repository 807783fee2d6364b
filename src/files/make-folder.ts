/**
 * `mkdir -p` that ends. Node's own goes round for ever where the kernel says ENOENT of a folder whose parent is there, as it
 * does below /proc (Node 20 to 24).
 */
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errnoOf } from '../model/errors.js';

/** Resolves with the first folder that was made, undefined when all were there. */
export async function makeFolder(path: string): Promise<string | undefined> {
  try {
    await mkdir(path);
    return path;
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) {
      if (await isFolder(path)) return undefined;
      throw error;
    }
  }
  const first = await makeFolder(dirname(path));
  try {
    await mkdir(path);
  } catch (error) {
    // Another run made it meanwhile.
    if (!(await isFolder(path))) throw error;
  }
  return first ?? path;
}

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
