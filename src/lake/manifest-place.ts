/** The place of the manifest of a series: `OUT/_manifests/<folder of the series>.jsonl`. */
import { lstatSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { unlessMissing } from '../model/errors.js';
import { backingOf } from '../files/backing.js';
import { FOLDERS, seriesOfFolder } from './layout.js';
import { checkedFolder, entryAt, openForReading } from '../files/path-checks.js';
import { makeSyncedFolder } from '../files/publish.js';
import { fileSize } from '../files/file-facts.js';

/** The ending of a manifest; before it comes the name of the folder of its series. */
export const MANIFEST_ENDING = '.jsonl';

/** The root of the lake, and the absolute path. */
export function manifestPlace(seriesFolder: string) {
  const series = seriesOfFolder(seriesFolder);
  // Exchange, market, dataset, interval (if any), symbol. The parent of any other folder counts as the root.
  const depth = series === undefined ? 1 : series.interval === undefined ? 4 : 5;
  let root = seriesFolder;
  for (let level = 0; level < depth; level += 1) root = dirname(root);
  const path = join(root, FOLDERS.manifests, seriesFolder.slice(root.length)) + MANIFEST_ENDING;
  return { root, path };
}

/**
 * Opens the manifest for reading, by its descriptor; undefined without one. Rejects with `disk` for a symbolic link on the path below the root, and
 * for anything else than a regular file.
 */
export async function openManifest(seriesFolder: string) {
  const path = await checkedPath(seriesFolder);
  // The facts of an entry need no descriptor, of which the process may have none left.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  const file = await unlessMissing(openForReading(path));
  return file === undefined ? undefined : { file, path };
}

export const hasManifest = async (seriesFolder: string): Promise<boolean> =>
  (await fileSize(manifestPlace(seriesFolder).path)) !== undefined;

/** Prepares the place for a write: makes its folder. Rejects like `openManifest`. Needs the lock of the lake. */
export async function claimManifest(seriesFolder: string) {
  const path = await checkedPath(seriesFolder);
  const facts = await entryAt(path);
  if (facts === undefined) await makeSyncedFolder(dirname(path));
  return { path, hasHardLinks: facts?.isFile() === true && facts.nlink > 1 };
}

/** The path of the manifest of a series, which is opened first in a lake that has another side. */
async function checkedPath(seriesFolder: string): Promise<string> {
  const { root, path } = manifestPlace(seriesFolder);
  await backingOf(seriesFolder)?.openSeries(seriesFolder);
  await checkedFolder(root, relative(root, dirname(path)).replaceAll('\\', '/'));
  return path;
}
