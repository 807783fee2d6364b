import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CryptodlError, errnoOf, toCryptodlError } from '../model/errors.js';
import { refuseLinkedFolders } from '../lake/layout.js';
import { acquireLock, holderText } from '../lake/lock.js';
import type { Lock } from '../lake/lock.js';
import { runFolderIn } from './run-paths.js';
import { finishCommits } from '../lake/commit-journal.js';
import type { RefusedCommit } from '../lake/commit-journal.js';
import type { Session } from './session.js';
import { shownPath } from '../text/printable.js';
import { durationText } from '../model/units.js';
import { makeFolder } from '../files/make-folder.js';

interface OpenLake {
  readonly lock: Lock;
  /** Commits that an earlier run had begun, and that cannot be finished here. */
  readonly refused: readonly RefusedCommit[];
}

/**
 * Takes the lake's lock, finishes what a killed run had begun to commit, and clears what it left in the spool. Rejects
 * with `locked`, or with a disk error that names the flag.
 */
export async function openLake(session: Session, command: string): Promise<OpenLake> {
  const { own, root, staging } = session.paths;
  await refuseLinkedFolders(session.paths);
  await writable(root, '--out', () => makeFolder(own));
  const lock = await writable(own, '--out', () => takeLock(session, command));
  try {
    const refused = await finishCommits(session.paths, session.venue);
    for (const commit of refused) session.observer.warn(refusedText(root, commit));
    await clearLeftover(session, staging, '--out');
    await writable(root, '--out', () => makeFolder(staging));
    // A lake that is new has its identity only now.
    session.runFolder = runFolderIn(dirname(session.runFolder), session.paths);
    // The run folder of another user is of no use to this one.
    if (!(await clearLeftover(session, session.runFolder, '--temp-dir'))) {
      session.runFolder += `-of-uid-${process.getuid?.() ?? ''}`;
      await clearLeftover(session, session.runFolder, '--temp-dir');
    }
    return { lock, refused };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function refusedText(root: string, { name, why, kept }: RefusedCommit): string {
  return `the commit journal ${name} is not applied: ${why}; it is kept in ${shownPath(kept)} with what was staged, and cryptodl verify --out ${shownPath(root)} tells whether the lake lacks anything`;
}

/** Whether the other run has ended is looked up this often. */
const POLL_MS = 1000;

/** Waits as long as --wait-lock allows. */
async function takeLock(session: Session, command: string): Promise<Lock> {
  const { clock, options, observer, paths, stop } = session;
  const allowedMs = options.waitLockMs;
  const begunAt = clock.monotonic();
  let told: string | undefined;
  for (;;) {
    try {
      const lock = await acquireLock(paths.own, { command, clock, onLost: (lost) => stop.abort(lost) });
      const { takenFrom } = lock;
      if (takenFrom !== undefined)
        observer.warn(`took the lake over from a run without a heartbeat: ${holderText(takenFrom)}`);
      return lock;
    } catch (error) {
      if (!(error instanceof CryptodlError) || error.code !== 'locked' || allowedMs === undefined)
        throw error;
      const leftMs = begunAt + allowedMs - clock.monotonic();
      if (leftMs <= 0) throw afterWaiting(error, allowedMs);
      // Whoever comes next is somebody else.
      if (error.message !== told)
        observer.waiting(`waiting up to ${durationText(leftMs)} (--wait-lock): ${error.message}`);
      told = error.message;
      await session.times.pause(() => sleepUnlessOver(session, Math.min(leftMs, POLL_MS), error));
    }
  }
}

/** When --max-duration ends the wait, it is still the other run that was in the way. */
async function sleepUnlessOver(
  { clock, stop, deadline }: Session,
  delayMs: number,
  locked: CryptodlError,
): Promise<void> {
  try {
    await clock.sleep(delayMs, stop.signal);
  } catch (error) {
    throw deadline.isEarly ? locked : error;
  }
}

function afterWaiting({ message, hint }: CryptodlError, waitedMs: number): CryptodlError {
  const told = `${message}; waited ${durationText(waitedMs)} for it (--wait-lock)`;
  return new CryptodlError('locked', told, hint === undefined ? {} : { hint });
}

/** Whether the folder is gone: what belongs to another user costs a warning, not the run. */
async function clearLeftover({ observer }: Session, path: string, flag: string): Promise<boolean> {
  try {
    await rm(path, { recursive: true, force: true });
    return true;
  } catch (error) {
    const code = errnoOf(error);
    if (code !== 'EACCES' && code !== 'EPERM') return writable(path, flag, () => Promise.reject(error));
    const place = (error as NodeJS.ErrnoException).path ?? path;
    observer.warn(
      `what an earlier run left cannot be removed (${code}): ${shownPath(place)}; remove it as its owner`,
    );
    return false;
  }
}

/** A disk error of `act` names the flag and the place; a full disk says so by itself. */
export async function writable<T>(path: string, flag: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Error) || !('errno' in error)) throw error;
    if (toCryptodlError(error).code === 'disk-full') throw error;
    throw new CryptodlError('disk', `${flag} ${shownPath(path)} cannot be used (${errnoOf(error)})`, {
      cause: error,
      hint: `choose another ${flag}, or make that one a folder that can be written`,
    });
  }
}
