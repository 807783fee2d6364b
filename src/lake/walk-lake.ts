/** Lists the series of a lake with their manifests, the other files in the folders of the exchange, symbolic links, and the entries of a folder. */
import { join, relative, sep } from 'node:path';
import type { Series } from '../model/task.js';
import { backingOf } from '../files/backing.js';
import { FOLDERS, refuseFile, refuseInnerFolder, seriesAt } from './layout.js';
import type { ExchangeFolders, LakePaths } from './layout.js';
import { MANIFEST_ENDING } from './manifest-place.js';
import { checkedFolder, isPartitionFile } from '../files/path-checks.js';
import { readdirSync } from 'node:fs';
import { errnoOf } from '../model/errors.js';

export interface SeriesFolder {
  readonly kind: 'series';
  readonly series: Series;
  readonly path: string;
  /** Undefined without one. */
  readonly manifest: FoundManifest | undefined;
}

export interface ListedSeries extends SeriesFolder {
  /** Names of the files in the folder. */
  readonly files: readonly string[];
  /** Files in subfolders, relative to the folder. */
  readonly nestedFiles: readonly string[];
  /** Symbolic links in the folder and its subfolders, relative to the folder. */
  readonly links: readonly string[];
}

interface FoundManifest {
  /** Relative to the root of the lake. */
  readonly path: string;
  readonly isLink: boolean;
}

type Found = SeriesFolder | LoosePath;

/**
 * Yields folder after folder, sorted by name; nothing for a missing lake. A series has data, a manifest, or both. Rejects with a
 * usage error for a file or a folder of another lake as root, and with `disk` for a symbolic link in place of the folder of the manifests or of its folder for
 * the exchange.
 */
export async function* walkLake(root: string, exchange: ExchangeFolders): AsyncGenerator<Found> {
  refuseInnerFolder(root, exchange);
  const manifests = await checkedFolder(root, `${FOLDERS.manifests}/${exchange.name}`);
  await backingOf(root)?.openLake([join(root, exchange.name), manifests]);
  const { folders, links } = listEntries(root);
  if (folders.length === 0) refuseFile(root);
  for (const path of links)
    if ([exchange.name, exchange.archive.topFolder, ...Object.values(FOLDERS)].includes(path))
      yield { kind: 'link', path };
  if (!links.includes(exchange.name)) yield* walkExchange(root, exchange, exchange.name);
}

/** Walks a folder of data together with the folder of the manifests of the same series. */
async function* walkExchange(root: string, exchange: ExchangeFolders, folder: string): AsyncGenerator<Found> {
  const data = listEntries(join(root, folder));
  const below = `${FOLDERS.manifests}/${folder}`;
  const manifests = listEntries(join(root, below));
  yield* looseIn(folder, data);
  const manifestOf = new Map<string, FoundManifest>();
  for (const kind of ['files', 'folders', 'links'] as const)
    for (const name of manifests[kind]) {
      const series = name.slice(0, -MANIFEST_ENDING.length);
      if (!name.endsWith(MANIFEST_ENDING) || seriesAt(exchange, `${folder}/${series}`) === undefined)
        continue;
      // A folder with the name of a manifest counts as a manifest; reading it gives the error.
      manifestOf.set(series, { path: `${below}/${name}`, isLink: kind === 'links' });
    }
  const isOther = (name: string): boolean => !manifestOf.has(name.slice(0, -MANIFEST_ENDING.length));
  const others = {
    files: manifests.files.filter(isOther),
    links: manifests.links.filter(isOther),
    folders: manifests.folders.filter(isOther),
  };
  yield* looseIn(below, others);
  const links = new Set([...data.links, ...others.links]);
  const names = new Set([...data.folders, ...others.folders, ...manifestOf.keys()]);
  for (const name of [...names].filter((each) => !links.has(each)).sort()) {
    const path = `${folder}/${name}`;
    const series = seriesAt(exchange, path);
    if (series === undefined) yield* walkExchange(root, exchange, path);
    else yield { kind: 'series', series, path: join(root, path), manifest: manifestOf.get(name) };
  }
}

/** The entries of a series as they are now. */
export async function seriesInFolder(root: string, found: SeriesFolder): Promise<ListedSeries> {
  const { path } = found;
  await backingOf(path)?.openSeries(path);
  const folder = relative(root, path).replaceAll(sep, '/');
  const { files, folders, links } = listEntries(path);
  const nestedFiles: string[] = [];
  const nestedLinks: string[] = [];
  for (const name of folders)
    for (const { kind, path: below } of looseBelow(root, `${folder}/${name}`))
      (kind === 'link' ? nestedLinks : nestedFiles).push(below.slice(folder.length + 1));
  return {
    ...found,
    // A folder in place of a partition counts as a file; reading it gives the error.
    files: [...files, ...folders.filter(isPartitionFile)],
    nestedFiles,
    links: [...links, ...nestedLinks],
  };
}

/** A file outside the series folders, or a symbolic link, which is not followed. `path` is relative to the root of the walk. */
export interface LoosePath {
  readonly kind: 'file' | 'link';
  readonly path: string;
}

function* looseIn(folder: string, { files, links }: Omit<Entries, 'folders'>): Generator<LoosePath> {
  for (const name of files) yield { kind: 'file', path: `${folder}/${name}` };
  for (const name of links) yield { kind: 'link', path: `${folder}/${name}` };
}

/** All files and links below a folder that contains no series. */
function* looseBelow(root: string, folder: string): Generator<LoosePath> {
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
