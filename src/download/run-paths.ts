/** Where the temporary files of a run are. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LakePaths } from '../lake/layout.js';
import type { Options } from '../options/flags.js';
import { absolutePath } from '../text/printable.js';

/** A dry run writes nothing, unless its plan is too large for the memory; it holds no lock, so it has a folder of its own. */
export function runFolder(options: Options, paths: LakePaths, home: string | undefined): string {
  if (options.dryRun) return join(tmpdir(), `cryptodl-dry-run-${process.pid}`);
  const given = options.tempDir;
  return runFolderIn(given === undefined ? paths.staging : absolutePath(given, home), paths);
}

/** Two containers may have two lakes at one path, and a folder for temporary files in common; the lake's own is its alone. */
export function runFolderIn(folder: string, { root, own, staging }: LakePaths): string {
  const name = folder === staging ? root : `${identityOf(own)}:${root}`;
  const lake = createHash('sha256').update(name).digest('hex').slice(0, 12);
  return join(folder, `run-${lake}`);
}

function identityOf(folder: string): string {
  try {
    const { dev, ino } = statSync(folder, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    // It is not there yet, or cannot be used, which is told where it is opened.
    return '';
  }
}
