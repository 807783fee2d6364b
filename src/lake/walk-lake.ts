/** Lists the series folders of a lake, the other files in the folder of the exchange, and symbolic links. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../model/errors.js';
import type { Series } from '../model/task.js';
import type { LakePaths, VenueFolders } from './layout.js';
import { MANIFEST, refuseFileAsRoot, seriesAt } from './layout.js';

export interface SeriesFolder {
  readonly kind: 'series';
  readonly series: Series;
  readonly path: string;
  /** Names of the files in the folder. */
  readonly files: readonly string[];
  /** Files in subfolders, relative to the folder. */
  readonly nestedFiles: readonly string[];
  /** Symbolic links in the folder and its subfolders, relative to the folder. */
  readonly links: readonly string[];
}

/** A file outside the series folders, or a symbolic link, which is not followed. `path` is relative to the root of the walk. */
export interface LoosePath {
  readonly kind: 'file' | 'link';
  readonly path: string;
}

type Found = SeriesFolder | LoosePath;

/** The folders of cryptodl in the root of a lake whose names do not depend on the exchange. */
const FIXED_FOLDERS = ['.cryptodl', 'failures', 'quarantine'];

/** Yields folder after folder, sorted by name; nothing for a missing lake. Rejects with a usage error for a file as root. */
export async function* walkLake(root: string, venue: VenueFolders): AsyncGenerator<Found> {
  const { folders, links } = await listEntries(root);
  if (folders.length === 0) refuseFileAsRoot(root);
  for (const path of links)
    if ([venue.name, venue.archive.topFolder, ...FIXED_FOLDERS].includes(path)) yield { kind: 'link', path };
  if (!folders.includes(venue.name)) return;
  yield* walkVenue(root, venue, venue.name);
}

function walkVenue(root: string, venue: VenueFolders, folder: string): AsyncGenerator<Found> {
  return walkFolder(root, folder, (below) => {
    const series = seriesAt(venue, below);
    return series === undefined ? walkVenue(root, venue, below) : walkSeries(root, below, series);
  });
}

/** Yields the files and links of a folder, and the results of `walk` for each subfolder. */
async function* walkFolder(
  root: string,
  folder: string,
  walk: (folder: string) => AsyncGenerator<Found>,
): AsyncGenerator<Found> {
  const { files, folders, links } = await listEntries(join(root, folder));
  yield* files.map((name): LoosePath => ({ kind: 'file', path: `${folder}/${name}` }));
  yield* links.map((name): LoosePath => ({ kind: 'link', path: `${folder}/${name}` }));
  for (const name of folders) yield* walk(`${folder}/${name}`);
}

async function* walkSeries(root: string, folder: string, series: Series): AsyncGenerator<SeriesFolder> {
  const path = join(root, folder);
  const { files, folders, links } = await listEntries(path);
  const nestedFiles: string[] = [];
  for (const name of folders) {
    // A folder with the name of the manifest counts as a manifest; reading it gives the error.
    if (name === MANIFEST) files.push(name);
    for await (const { kind, path: below } of looseBelow(root, `${folder}/${name}`))
      (kind === 'link' ? links : nestedFiles).push(below.slice(folder.length + 1));
  }
  yield { kind: 'series', series, path, files, nestedFiles, links };
}

/** All files and links below a folder that contains no series. */
async function* looseBelow(root: string, folder: string): AsyncGenerator<LoosePath> {
  const walk = (below: string): AsyncGenerator<LoosePath> => looseBelow(root, below);
  yield* walkFolder(root, folder, walk) as AsyncGenerator<LoosePath>;
}

/** Files in `.cryptodl` that exist only during a run: staged files, journals, claims. */
export async function listLeftovers(paths: LakePaths): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of looseBelow(paths.internal, 'tmp')) found.push(`.cryptodl/${path}`);
  const { files, links } = await listEntries(paths.internal);
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
export async function listEntries(path: string): Promise<Entries> {
  const found: Entries = { files: [], folders: [], links: [] };
  try {
    const all = await readdir(path, { withFileTypes: true });
    for (const entry of all.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const kind = entry.isSymbolicLink() ? 'links' : entry.isDirectory() ? 'folders' : 'files';
      found[kind].push(entry.name);
    }
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) throw error;
  }
  return found;
}
