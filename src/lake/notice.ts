/** The notice in the root of a lake: the terms of the exchange about its data. */
import { entryAt } from '../files/path-checks.js';
import { join } from 'node:path';
import { backingOf } from '../files/backing.js';
import type { LakePaths } from './layout.js';
import { publishText } from '../files/publish.js';

/** Parquet readers skip names that begin with an underscore. */
const NOTICE = '_NOTICE.md';

export const noticePath = ({ root }: Pick<LakePaths, 'root'>): string => join(root, NOTICE);

/**
 * Writes the notice if the lake has none. A file, a folder or a link of its name stays as it is, and a link is not followed.
 * Resolves with whether it was written. Rejects with the error of the system.
 */
export async function writeNotice(
  paths: Pick<LakePaths, 'root' | 'staging'>,
  lines: readonly string[],
): Promise<boolean> {
  await backingOf(paths.root)?.openFile(noticePath(paths));
  if ((await entryAt(noticePath(paths))) !== undefined) return false;
  await publishText(paths.staging, noticePath(paths), lines.join('\n'));
  return true;
}
