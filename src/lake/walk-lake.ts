/** Everything below a lake's root that is ours to look at: folders of series, and files that are in none. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../errors.js';
import type { LakePaths } from '../lake/layout.js';
import { originalName } from '../lake/layout.js';
import type { Market, Series } from '../task.js';
import { MARKETS } from '../venue/words.js';

export interface SeriesFolder {
  readonly kind: 'series';
  readonly series: Series;
  readonly path: string;
  /** Files directly in it. */
  readonly files: readonly string[];
  /** Files in folders below it, relative to it. */
  readonly deeper: readonly string[];
}

/** A file that is in no series' folder. */
export interface LooseFile {
  readonly kind: 'loose';
  /** Relative to the lake's root. */
  readonly path: string;
}

/** In path order. A lake that is not there has nothing. */
export async function* walkLake(root: string, venue: string): AsyncGenerator<SeriesFolder | LooseFile> {
  const { files, folders } = await entries(join(root, venue));
  yield* files.map((name) => loose(venue, name));
  for (const name of folders) {
    const market = MARKETS.find((known) => known === name);
    const place = `${venue}/${name}`;
    if (market === undefined) yield* looseBelow(root, place);
    else yield* walkMarket(root, place, market);
  }
}

async function* walkMarket(
  root: string,
  place: string,
  market: Market,
): AsyncGenerator<SeriesFolder | LooseFile> {
  const { files, folders } = await entries(join(root, place));
  yield* files.map((name) => loose(place, name));
  for (const name of folders)
    yield* walkDataset(root, `${place}/${name}`, { market, dataset: originalName(name) });
}

async function* walkDataset(
  root: string,
  place: string,
  above: Omit<Series, 'symbol'>,
): AsyncGenerator<SeriesFolder | LooseFile> {
  const { files, folders } = await entries(join(root, place));
  yield* files.map((name) => loose(place, name));
  for (const name of folders) {
    const below = `${place}/${name}`;
    const interval = valueOf(name, 'interval=');
    const symbol = valueOf(name, 'symbol=');
    if (symbol !== undefined) yield await seriesFolder(root, below, { ...above, symbol });
    else if (interval !== undefined && above.interval === undefined)
      yield* walkDataset(root, below, { ...above, interval });
    else yield* looseBelow(root, below);
  }
}

function valueOf(name: string, layer: string): string | undefined {
  return name.startsWith(layer) ? originalName(name.slice(layer.length)) : undefined;
}

async function seriesFolder(root: string, place: string, series: Series): Promise<SeriesFolder> {
  const path = join(root, place);
  const { files, folders } = await entries(path);
  const deeper: string[] = [];
  for (const name of folders)
    for await (const { path: below } of looseBelow(root, `${place}/${name}`))
      deeper.push(below.slice(place.length + 1));
  return { kind: 'series', series, path, files, deeper };
}

function loose(place: string, name: string): LooseFile {
  return { kind: 'loose', path: `${place}/${name}` };
}

/** All files below a folder of the lake; a link to a folder counts as one file. */
async function* looseBelow(root: string, place: string): AsyncGenerator<LooseFile> {
  const below = await readEntries(join(root, place));
  for (const { name, isFolder, isLink } of below) {
    if (isFolder && !isLink) yield* looseBelow(root, `${place}/${name}`);
    else yield loose(place, name);
  }
}

/** Files of the lake's own folder that only a run under way has: staged files, journals, claims. */
export async function leftovers(paths: LakePaths): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of looseBelow(paths.own, 'tmp')) found.push(`.cryptodl/${path}`);
  for (const { name, isFolder } of await readEntries(paths.own)) {
    if (!isFolder && /^(commit-|lock-.*\.(claim|tmp)$)/.test(name)) found.push(`.cryptodl/${name}`);
  }
  return found;
}

async function entries(path: string): Promise<{ files: string[]; folders: string[] }> {
  const all = await readEntries(path);
  return {
    files: all.filter(({ isFolder }) => !isFolder).map(({ name }) => name),
    folders: all.filter(({ isFolder }) => isFolder).map(({ name }) => name),
  };
}

interface Entry {
  readonly name: string;
  readonly isFolder: boolean;
  readonly isLink: boolean;
}

/** Sorted; nothing for a folder that is not there. A link counts as what it leads to. */
async function readEntries(path: string): Promise<Entry[]> {
  try {
    const found = await readdir(path, { withFileTypes: true });
    const all = found.map(async (entry): Promise<Entry> => {
      const isLink = entry.isSymbolicLink();
      const isFolder = isLink ? await isFolderAt(join(path, entry.name)) : entry.isDirectory();
      return { name: entry.name, isFolder, isLink };
    });
    return (await Promise.all(all)).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return [];
    throw error;
  }
}

async function isFolderAt(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
