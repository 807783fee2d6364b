/** Opens the lake of a run for writing: takes its lock, finishes commits of a killed run, and clears temporary files. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { removeLeftovers, tempPath } from '../../files/temp-files.js';
import { CryptodlError, errnoOf, toCryptodlError } from '../../model/errors.js';
import { refuseLinkedFolders, removeRunFolder, type LakePaths } from '../../lake/layout.js';
import { acquireLock, holderText, type Lock } from '../../lake/lock.js';
import { Manifests } from '../../lake/manifests.js';
import { finishCommits } from '../../lake/commit-files.js';
import type { LakeParts, Session } from './session.js';
import { reasonOf } from '../../text/path-faults.js';
import { shellWord, shownPath } from '../../text/printable.js';
import { durationText } from '../../model/units.js';
import { makeFolder } from '../../files/disk.js';

/**
 * The manifests are read anew: before this run had the lock, another process could change them. The run folder does not exist.
 * Rejects with `locked`, with `usage` if the root is a file, with the error of a stop, or with a disk error.
 */
export async function openLake(session: Session, command: string): Promise<LakeParts> {
  const { internal, root, staging } = session.paths;
  await refuseLinkedFolders(session.paths);
  await writable(root, '--out', () => makeFolder(internal));
  const lock = await writable(internal, '--out', () => takeLock(session, command));
  try {
    for (const { name, why, kept } of await finishCommits(session.paths, session.exchange))
      session.observer.warn(
        `the commit journal ${name} is not applied: ${why}; it is kept in ${shownPath(kept)} with its staged files; to check the lake: cryptodl verify --out ${shellWord(shownPath(root))}`,
      );
    await clearStaging(session);
    await writable(root, '--out', () => makeFolder(staging));
    // The lock proves that the other runs of this lake have ended, also those of other containers.
    const kind = runFolderKind(session.paths);
    if (session.options.tempDir !== undefined)
      await removeLeftovers(session.tempFolder, (what) => what === kind);
    const manifests = new Manifests(session.exchange.archive);
    return { lock, manifests, runFolder: newRunFolder(session) };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Removes the temporary files of a run, and releases the lock. */
export async function closeLake(paths: LakePaths, { lock, runFolder }: LakeParts): Promise<void> {
  try {
    await removeRunFolder(paths, runFolder);
  } finally {
    await lock.release();
  }
}

/** The new folder of a run for its temporary files: in --temp-dir, else in the lake. Nothing is created. */
export const newRunFolder = ({ options, paths, tempFolder }: Session): string =>
  tempPath(options.tempDir === undefined ? paths.staging : tempFolder, runFolderKind(paths));

/**
 * The kind of the temporary files of all runs of a lake. It depends on device and inode of the lake, because two containers may have
 * different lakes at one path and share the --temp-dir.
 */
function runFolderKind({ root, internal }: LakePaths): string {
  const { dev, ino } = statSync(internal, { bigint: true });
  const lake = createHash('sha256').update(`${dev}:${ino}:${root}`).digest('hex');
  return `run-${lake.slice(0, 12)}`;
}

const POLL_MS = 1000;

/** Takes the lock, and waits for it as long as --wait-lock allows. Rejects with `locked`. */
async function takeLock(session: Session, command: string): Promise<Lock> {
  const { clock, deadline, options, observer, paths, stop } = session;
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
      try {
        await session.live.pause(() => clock.sleep(Math.min(leftMs, POLL_MS), stop.signal));
      } catch (ended) {
        // --max-duration ends the wait.
        throw deadline.isEarly ? error : ended;
      }
    }
  }
}

/** Removes the temporary files in the lake. Warns if the permissions of a file forbid that. */
async function clearStaging({ observer, paths: { staging } }: Session): Promise<void> {
  try {
    await rm(staging, { recursive: true, force: true });
  } catch (error) {
    const code = errnoOf(error);
    if (code !== 'EACCES' && code !== 'EPERM') return writable(staging, '--out', () => Promise.reject(error));
    const place = (error as NodeJS.ErrnoException).path ?? staging;
    observer.warn(
      `temporary files of an earlier run cannot be removed (${code}): ${shownPath(place)}; remove them as their owner`,
    );
  }
}

/** Adds flag and path to a disk error of `act`; the error of a full disk stays as it is. */
export async function writable<T>(path: string, flag: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Error) || !('errno' in error)) throw error;
    if (toCryptodlError(error).code === 'disk-full') throw error;
    const text = `${flag} ${shownPath(path)} cannot be used (${reasonOf(error)})`;
    const hint = `choose another ${flag}, or make this one a writable folder`;
    throw new CryptodlError('disk', text, { cause: error, hint });
  }
}
