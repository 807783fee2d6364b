/** Refuses a folder of a lake in place of the lake. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { usage } from '../model/errors.js';
import { shownPath } from '../text/printable.js';
import { FOLDERS } from './layout.js';
import type { VenueFolders } from './layout.js';

/**
 * Throws a usage error that names the lake, if the path is in a folder that cryptodl makes in a lake. A lake in such a folder would give
 * readers of the outer lake each row twice. A lake that is there already is accepted.
 */
export function refuseInnerFolder(root: string, venue: VenueFolders): void {
  const isLake = (folder: string): boolean => existsSync(join(folder, FOLDERS.manifests, venue.name));
  const names: readonly string[] = [venue.name, venue.archive.topFolder, ...Object.values(FOLDERS)];
  for (let inner = root; dirname(inner) !== inner; inner = dirname(inner)) {
    const lake = dirname(inner);
    if (!names.includes(basename(inner)) || !isLake(lake) || isLake(root)) continue;
    // `data` is the folder of the zips, but also the default of --out, which a lake in the current folder may have below it.
    if (basename(inner) === venue.archive.topFolder && isEmpty(inner)) continue;
    throw usage(`--out: ${shownPath(root)} is a folder of the lake ${shownPath(lake)}`, 'name the lake', {
      flags: { out: shownPath(lake) },
    });
  }
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0;
  } catch {
    // It is missing, a file, or unreadable. Its first use gives the error.
    return true;
  }
}
