import { mkdir, rm } from 'node:fs/promises';
import { CryptodlError, errnoOf } from '../errors.js';
import { acquireLock } from '../lake/lock.js';
import type { Lock } from '../lake/lock.js';
import { finishCommits } from '../lake/redo.js';
import type { Session } from './session.js';
import { shownPath } from '../shown-path.js';

/**
 * Takes the lake's lock, finishes what a killed run had begun to commit, and clears what it left in the spool. Rejects
 * with `locked`, or with a disk error that names the flag.
 */
export async function openLake(session: Session, command: string): Promise<Lock> {
  const { own, root, staging } = session.paths;
  await writable(root, '--out', () => mkdir(own, { recursive: true }));
  const lock = await acquireLock(own, { command, now: session.clock.now() });
  try {
    await finishCommits(session.paths);
    await rm(staging, { recursive: true, force: true });
    await writable(session.runFolder, '--temp-dir', () =>
      rm(session.runFolder, { recursive: true, force: true }),
    );
    return lock;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function writable(path: string, flag: string, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    throw new CryptodlError('disk', `${flag} ${shownPath(path)} cannot be used (${errnoOf(error)})`, {
      cause: error,
      hint: `choose another ${flag}, or make that one a folder that can be written`,
    });
  }
}
