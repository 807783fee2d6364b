/**
 * The place of the manifest of a series: `OUT/_manifests/<folder of the series>.jsonl`. Earlier versions kept it in the folder of
 * the series. A reader takes it from there if the present place has none, and the next writer moves it.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { errnoOf } from '../model/errors.js';
import { openBackedSeries } from './backing.js';
import { FOLDERS, seriesOfFolder } from './layout.js';
import { checkedFolder, entryAt, openRegularFile } from './path-checks.js';
import { fileSize, makeSyncedFolder, moveFile, syncDirectory } from './publish.js';

/** The ending of a manifest; before it comes the name of the folder of its series. */
export const MANIFEST_ENDING = '.jsonl';

/** The manifest of an earlier version, in the folder of its series. */
export const EARLIER_MANIFEST = '_manifest.jsonl';

export interface ManifestPlace {
  /** The root of the lake. */
  readonly root: string;
  /** Absolute. */
  readonly path: string;
  /** The place in a lake of an earlier version. */
  readonly earlier: string;
}

export function manifestPlace(seriesFolder: string): ManifestPlace {
  const series = seriesOfFolder(seriesFolder);
  // Exchange, market, dataset, interval (if any), symbol. The parent of any other folder counts as the root.
  const depth = series === undefined ? 1 : series.interval === undefined ? 4 : 5;
  const root = join(seriesFolder, ...Array.from({ length: depth }, () => '..'));
  return {
    root,
    path: join(root, FOLDERS.manifests, relative(root, seriesFolder)) + MANIFEST_ENDING,
    earlier: join(seriesFolder, EARLIER_MANIFEST),
  };
}

/**
 * Opens the manifest for reading; undefined without one. Rejects with `disk` for a symbolic link on the path below the root, and
 * for anything else than a regular file.
 */
export async function openManifest(
  seriesFolder: string,
): Promise<{ readonly file: FileHandle; readonly path: string } | undefined> {
  const { root, path, earlier } = manifestPlace(seriesFolder);
  await openBackedSeries(seriesFolder);
  await refuseLinks(root, path);
  // The present place is tried again, because a run may move the manifest meanwhile.
  for (const each of [path, earlier, path]) {
    try {
      return { file: await openRegularFile(each, constants.O_RDONLY), path: each };
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
  }
  return undefined;
}

export async function hasManifest(seriesFolder: string): Promise<boolean> {
  const { path, earlier } = manifestPlace(seriesFolder);
  return ((await fileSize(path)) ?? (await fileSize(earlier))) !== undefined;
}

/**
 * Prepares the present place for a write: makes its folder, and moves the manifest of an earlier version there if the place has
 * none. Rejects like `openManifest`. Needs the lock of the lake.
 */
export async function claimManifest(
  seriesFolder: string,
): Promise<{ readonly path: string; readonly hasHardLinks: boolean }> {
  const { root, path, earlier } = manifestPlace(seriesFolder);
  await openBackedSeries(seriesFolder);
  await refuseLinks(root, path);
  let facts = await entryAt(path);
  if (facts === undefined) {
    await makeSyncedFolder(dirname(path));
    facts = await entryAt(earlier);
    if (facts !== undefined) await moveManifest(earlier, path);
  }
  return { path, hasHardLinks: facts?.isFile() === true && facts.nlink > 1 };
}

async function moveManifest(earlier: string, path: string): Promise<void> {
  // Rejects for a symbolic link and for anything else than a regular file.
  await (await openRegularFile(earlier, constants.O_RDONLY)).close();
  await moveFile(earlier, path);
  await syncDirectory(dirname(path));
}

async function refuseLinks(root: string, path: string): Promise<void> {
  await checkedFolder(root, relative(root, dirname(path)).replaceAll('\\', '/'));
}
