/** Refuses places in the lake for files that are not of the lake. */
import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { backingOf } from '../../files/backing.js';
import { FOLDERS } from '../../lake/layout.js';
import { usage } from '../../model/errors.js';
import { shownPath } from '../../text/printable.js';

/** Throws a usage error for a --target that is the lake or another one, or a file or folder in it. Both paths are absolute; links are followed. `exchange`: its name. */
export async function refuseInLake(target: string, lake: string, exchange: string): Promise<void> {
  if (backingOf(lake) !== undefined) return;
  const [inner, outer] = [await realPath(target), await realPath(lake)];
  const found = inner === outer || inner.startsWith(`${outer}${sep}`) ? lake : lakeAbove(inner, exchange);
  if (found !== undefined)
    throw usage(
      `--target ${shownPath(target)} is in the lake ${shownPath(found)}`,
      'name a place outside of the lake',
    );
}

/** The lake in which a real path lies; undefined without one. */
function lakeAbove(path: string, exchange: string): string | undefined {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(join(folder, FOLDERS.manifests, exchange))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** The real path of the deepest existing folder, with the rest. */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(await realPath(above), path.slice(above.length));
  }
}
