/**
 * Opens the lake of a run for writing: takes its lock, finishes the commits of a killed run, and clears temporary
 * files.
 */
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CryptodlError, errnoOf, toCryptodlError } from '../model/errors.js';
import { refuseLinkedFolders, runFolderIn } from '../lake/layout.js';
import { acquireLock, holderText } from '../lake/lock.js';
import type { Lock } from '../lake/lock.js';
import { Manifests } from '../lake/manifests.js';
import { finishCommits } from '../lake/commit-journal.js';
import type { LakeParts, LakeSession, RunSession } from './session.js';
import { reasonOf } from '../text/path-faults.js';
import { shellWord, shownPath } from '../text/printable.js';
import { durationText } from '../model/units.js';
import { makeFolder } from '../files/disk.js';

type LakeRequest = Pick<LakeSession, 'paths' | 'runFolder'> &
  Pick<RunSession, 'clock' | 'deadline' | 'observer' | 'options' | 'stop' | 'times' | 'venue'>;

/**
 * Takes the lake's lock, finishes the commits of a killed run, and clears its temporary files. The manifests are read anew: before this
 * run had the lock, another process could change them. The run folder is empty. Rejects with `locked`, with `usage` if
 * the root is a file, with the error of a stop, or with a disk error.
 */
export async function openLake(session: LakeRequest, command: string): Promise<LakeParts> {
  const { internal, root, staging } = session.paths;
  await refuseLinkedFolders(session.paths);
  await writable(root, '--out', () => makeFolder(internal));
  const lock = await writable(internal, '--out', () => takeLock(session, command));
  try {
    for (const { name, why, kept } of await finishCommits(session.paths, session.venue))
      session.observer.warn(
        `the commit journal ${name} is not applied: ${why}; it is kept in ${shownPath(kept)} with its staged files; to check the lake: cryptodl verify --out ${shellWord(shownPath(root))}`,
      );
    await clearLeftover(session, staging, '--out');
    await writable(root, '--out', () => makeFolder(staging));
    const manifests = new Manifests(session.venue.archive);
    return { lock, manifests, runFolder: await emptyRunFolder(session) };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function emptyRunFolder(session: LakeRequest): Promise<string> {
  // In a --temp-dir, the name depends on the inode of a folder of the lake. In a new lake, that folder has only just been created.
  const folder = runFolderIn(dirname(session.runFolder), session.paths);
  if (await clearLeftover(session, folder, '--temp-dir')) return folder;
  // The old folder probably belongs to another user.
  const ofUser = `${folder}-of-uid-${process.getuid?.() ?? ''}`;
  await clearLeftover(session, ofUser, '--temp-dir');
  return ofUser;
}

const POLL_MS = 1000;

/** Takes the lock, and waits for it as long as --wait-lock allows. Rejects with `locked`. */
async function takeLock(session: LakeRequest, command: string): Promise<Lock> {
  const { clock, options, observer, paths, stop } = session;
  const allowedMs = options.waitLockMs;
  const begunAt = clock.monotonic();
  let shown: string | undefined;
  for (;;) {
    try {
      const lock = await acquireLock(paths.internal, { command, clock, onLost: (lost) => stop.abort(lost) });
      const { takenFrom } = lock;
      if (takenFrom !== undefined)
        observer.warn(`took over the lock of a run without a heartbeat: ${holderText(takenFrom)}`);
      return lock;
    } catch (error) {
      if (!(error instanceof CryptodlError) || error.code !== 'locked' || allowedMs === undefined)
        throw error;
      const leftMs = begunAt + allowedMs - clock.monotonic();
      if (leftMs <= 0) {
        const text = `${error.message}; waited ${durationText(allowedMs)} for it (--wait-lock)`;
        throw new CryptodlError('locked', text, { hint: error.hint });
      }
      // The message names the holder, so it is new for each holder.
      if (error.message !== shown)
        observer.waiting(`waiting up to ${durationText(leftMs)} (--wait-lock): ${error.message}`);
      shown = error.message;
      await session.times.pause(() => sleepUnlessOver(session, Math.min(leftMs, POLL_MS), error));
    }
  }
}

/** Rejects with the error of the lock when --max-duration ends the wait. */
async function sleepUnlessOver(
  { clock, stop, deadline }: LakeRequest,
  delayMs: number,
  locked: CryptodlError,
): Promise<void> {
  try {
    await clock.sleep(delayMs, stop.signal);
  } catch (error) {
    throw deadline.isEarly ? locked : error;
  }
}

/** Removes the folder. Resolves with false, after a warning, if the permissions of the folder or of a file in it forbid that. */
async function clearLeftover({ observer }: LakeRequest, path: string, flag: string): Promise<boolean> {
  try {
    await rm(path, { recursive: true, force: true });
    return true;
  } catch (error) {
    const code = errnoOf(error);
    if (code !== 'EACCES' && code !== 'EPERM') return writable(path, flag, () => Promise.reject(error));
    const place = (error as NodeJS.ErrnoException).path ?? path;
    observer.warn(
      `temporary files of an earlier run cannot be removed (${code}): ${shownPath(place)}; remove them as their owner`,
    );
    return false;
  }
}

/** Adds flag and path to a disk error of `act`; the error of a full disk stays as it is. */
export async function writable<T>(path: string, flag: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Error) || !('errno' in error)) throw error;
    if (toCryptodlError(error).code === 'disk-full') throw error;
    throw new CryptodlError(
      'disk',
      `${flag} ${shownPath(path)} cannot be used (${reasonOf(errnoOf(error))})`,
      {
        cause: error,
        hint: `choose another ${flag}, or make this one a writable folder`,
      },
    );
  }
}
