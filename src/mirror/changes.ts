/** The files of a mirror that differ from its bucket. */
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../model/errors.js';
import type { KnownFiles } from './known-files.js';
import { stampAt } from './stub.js';

export interface Changes {
  /** Keys of new and changed files. */
  readonly changed: readonly string[];
  /** Keys of files that the bucket has and the mirror no longer has. */
  readonly gone: readonly string[];
}

/** `folders`: keys, without their subfolders; `.`: the root. */
export async function changesIn(
  root: string,
  known: KnownFiles,
  folders: readonly string[],
): Promise<Changes> {
  const changed: string[] = [];
  const gone: string[] = [];
  for (const folder of folders) {
    const keyOf = (name: string): string => (folder === '.' ? name : `${folder}/${name}`);
    const entries = await entriesOf(join(root, folder));
    const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    const stamps = await Promise.all(names.map((name) => stampAt(join(root, keyOf(name)))));
    for (const [at, name] of names.entries())
      if (stamps[at] !== undefined && stamps[at] !== known.get(keyOf(name))?.stamp) changed.push(keyOf(name));
    const present = new Set(entries.map(({ name }) => name));
    gone.push(
      ...known
        .namesIn(folder)
        .filter((name) => !present.has(name))
        .map(keyOf),
    );
  }
  return { changed, gone };
}

/** The folder and all folders below it, in the bucket or in the mirror. */
export async function foldersBelow(root: string, known: KnownFiles, folder: string): Promise<string[]> {
  const found = new Set(known.foldersBelow(folder));
  const visit = async (each: string): Promise<void> => {
    found.add(each);
    for (const entry of await entriesOf(join(root, each)))
      if (entry.isDirectory()) await visit(`${each}/${entry.name}`);
  };
  await visit(folder);
  return [...found];
}

async function entriesOf(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return [];
    throw error;
  }
}
