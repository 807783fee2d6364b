/** The entries of a folder of a lake. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../model/errors.js';
import type { LakePaths } from './layout.js';

/** A file outside the series folders, or a symbolic link, which is not followed. `path` is relative to the root of the walk. */
export interface LoosePath {
  readonly kind: 'file' | 'link';
  readonly path: string;
}

export function* looseIn(folder: string, { files, links }: Omit<Entries, 'folders'>): Generator<LoosePath> {
  for (const name of files) yield { kind: 'file', path: `${folder}/${name}` };
  for (const name of links) yield { kind: 'link', path: `${folder}/${name}` };
}

/** All files and links below a folder that contains no series. */
export function* looseBelow(root: string, folder: string): Generator<LoosePath> {
  const entries = listEntries(join(root, folder));
  yield* looseIn(folder, entries);
  for (const name of entries.folders) yield* looseBelow(root, `${folder}/${name}`);
}

/** Files in `.cryptodl` that exist only during a run: staged files, journals, claims. */
export function listLeftovers(paths: LakePaths): string[] {
  const found: string[] = [];
  for (const { path } of looseBelow(paths.internal, 'tmp')) found.push(`.cryptodl/${path}`);
  const { files, links } = listEntries(paths.internal);
  for (const name of [...files, ...links].sort())
    if (/^(commit-[\w-]+\.json(\.partial)?|lock-.*\.(claim|tmp))$/.test(name))
      found.push(`.cryptodl/${name}`);
  return found;
}

interface Entries {
  readonly files: string[];
  readonly folders: string[];
  readonly links: string[];
}

/** The entries of a folder, sorted; empty for a missing folder. */
export function listEntries(path: string): Entries {
  const found: Entries = { files: [], folders: [], links: [] };
  try {
    // The call blocks, because it takes microseconds, and a round trip to the thread pool takes many times as long.
    const all = readdirSync(path, { withFileTypes: true });
    for (const entry of all.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const kind = entry.isSymbolicLink() ? 'links' : entry.isDirectory() ? 'folders' : 'files';
      found[kind].push(entry.name);
    }
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) throw error;
  }
  return found;
}
