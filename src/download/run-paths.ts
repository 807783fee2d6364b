/** Where a run's things are: hosts, state, spool. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { errnoOf, usage } from '../model/errors.js';
import type { LakePaths } from '../lake/layout.js';
import type { Options } from '../options/flags.js';
import type { Surroundings } from '../options/environment.js';
import { absolutePath } from '../text/paths.js';
import type { Venue } from '../source/venue.js';

/** Where somebody moved the archive, the listing is asked at the same place. */
export function listingUrl(options: Options, { hosts }: Venue): string {
  return options.listingUrl ?? (options.archiveUrl === hosts.archive ? hosts.listing : options.archiveUrl);
}

/** What the runs of this machine share. */
export function stateFolder(options: Options, { home, stateHome }: Surroundings): string {
  const given = options.stateDir;
  if (given !== undefined) return absolutePath(given, home);
  return join(stateHome ?? join(home ?? homeOfUser(), '.local', 'state'), 'cryptodl');
}

/** Without HOME, as for some services. Not the temporary folder: other users could make a folder of that name first. */
function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch (error) {
    throw usage(
      `HOME is not set, and no home folder of this user is known (${errnoOf(error)})`,
      'give a folder that is your own with --state-dir DIR',
    );
  }
}

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
