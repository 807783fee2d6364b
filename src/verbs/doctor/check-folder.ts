/** Checks of the folders of a run. They leave no files behind. */
import { constants } from 'node:fs';
import { access, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stagedBeside } from '../../files/temp-files.js';
import type { BackingTrial } from '../../files/backing.js';
import type { LakePaths } from '../../lake/layout.js';
import { refuseIfLocked } from '../../lake/lock.js';
import { toCryptodlError, errnoOf } from '../../model/errors.js';
import { bytesText } from '../../model/units.js';
import { reasonOf } from '../../text/path-faults.js';
import { shownPath } from '../../text/printable.js';
import { checkResult, type CheckResult } from './check-machine.js';

const LITTLE_ROOM_BYTES = 1e9;

/** Warns when the folder has less than 1 GB free, and when a state folder cannot be written; fails for others. `within`: for the probe file. */
export async function checkFolder(
  check: 'out' | 'temp' | 'state',
  path: string,
  within = path,
): Promise<CheckResult> {
  const shown = shownPath(path);
  try {
    const there = await nearest(path);
    const { bavail, blocks, bsize } = await statfs(there);
    // Some network file systems report a size of 0.
    const room = blocks === 0 ? undefined : bavail * bsize;
    const free = room === undefined ? '' : `; ${bytesText(room)} free`;
    if (there === path) await writeProbe(await nearest(within));
    else await access(there, constants.W_OK | constants.X_OK);
    const found = `${shown} ${there === path ? 'can be written' : 'does not exist yet; the first run creates it'}${free}`;
    if ((room ?? Infinity) >= LITTLE_ROOM_BYTES) return checkResult(check, 'ok', found);
    return checkResult(check, 'warn', found, {
      next: `free some space, or choose another ${check === 'out' ? '--out' : `--${check}-dir`}`,
    });
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'unknown error') throw error;
    const found = `${shown} is not writable: ${reasonOf(error)} (${code})`;
    if (check !== 'state')
      return checkResult(check, 'fail', found, { next: 'choose another folder, or make this one writable' });
    return checkResult(check, 'warn', found, {
      next: 'choose a writable --state-dir: without one, runs do not share bans, request limits and cached answers',
    });
  }
}

/** The result for a lake in a bucket. A bucket that refuses the trial fails the check with its error. */
export function bucketResult(shown: string, { putMs, isAtomic }: BackingTrial): CheckResult {
  const found = `${shown} is written; a put takes ${Math.round(putMs)} ms`;
  if (isAtomic) return checkResult('out', 'ok', found);
  return checkResult('out', 'warn', `${found}; the server has no conditional writes`, {
    next: 'let only one run at a time write a series (--shard)',
  });
}

/** The folder, or its nearest parent that exists. Throws ENOTDIR where a file stands in place of a folder. */
async function nearest(path: string): Promise<string> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if ((await stat(folder)).isDirectory()) return folder;
      throw Object.assign(new Error(`${folder} is not a folder`), { code: 'ENOTDIR' });
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}

async function writeProbe(folder: string): Promise<void> {
  const file = await stagedBeside(join(folder, 'probe'));
  try {
    await writeFile(file, 'probe', { flag: 'wx' });
  } finally {
    await rm(file, { force: true });
  }
}

/** Warns while another run holds the lock. */
export async function checkLock({ internal }: LakePaths): Promise<CheckResult> {
  try {
    await refuseIfLocked(internal);
    return checkResult('lock', 'ok', 'no run writes to this lake');
  } catch (error) {
    const { code, message, hint } = toCryptodlError(error);
    if (code !== 'locked') throw error;
    return checkResult('lock', 'warn', message, { next: hint });
  }
}
