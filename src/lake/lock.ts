/** The lock of a lake: one process at a time may write to it. */
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, unlessMissing } from '../model/errors.js';
import { withClaim } from './lock-claim.js';
import { fileSystemNow, describeThisProcess, readHolderFile, isExpired, Lease } from './lock-holder.js';
import { LEASE_MS, type LockHolder, type HolderFile } from './lock-holder.js';
import { releaseSocket, bindSocket, isSocketTaken, nameOf } from './lock-socket.js';
import { processState } from '../files/running-process.js';

export interface Lock {
  /** The previous holder, on another host or in another container, whose lease had expired; undefined if the lock was free. */
  readonly takenFrom: LockHolder | undefined;
  /** Call before every commit. Rejects with `locked` when this run has lost the lock, and with the error of the disk. */
  confirm(): Promise<void>;
  /** Releases the lock; a second call does nothing. */
  release(): Promise<void>;
}

export interface LockRequest {
  readonly command: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep' | 'timer'>;
  /** Called once, with a `locked` error, when this run has lost the lock. */
  readonly onLost: (error: CryptodlError) => void;
}

/**
 * Locks the lake of `directory` (`<out>/.cryptodl`, created if missing). Between processes of one network namespace on Linux, a
 * socket of the kernel decides, so a killed run leaves no lock behind. In all other cases `lock.json` decides, which names the
 * holder. The file is valid while the holder runs. For a holder on another host or in another container, it is valid until the
 * lease expires.
 *
 * Rejects with `locked`, also if this process already holds the lock. The message names the holder if it is known.
 */
export async function acquireLock(directory: string, { command, clock, onLost }: LockRequest): Promise<Lock> {
  await makeFolder(directory);
  const path = join(directory, 'lock.json');
  const me = describeThisProcess(command, clock.now());
  const socket = await bindSocket(directory);
  if (socket === 'taken') throw await socketHeldError(directory, path);
  let takenFrom: LockHolder | undefined;
  try {
    takenFrom = await withClaim(directory, { me, clock }, async (claim, nowMs) => {
      const file = await readHolderFile(path);
      if (file !== undefined && file.holder === undefined && socket === 'unknown')
        throw new CryptodlError('locked', `the lock file ${path} cannot be read`, {
          hint: `if no other run writes to this lake, remove ${path}`,
        });
      const expired = await expiredHolder(file, me, () => nowMs);
      await rename(claim, path);
      return expired;
    });
  } catch (error) {
    await releaseSocket(socket);
    throw error;
  }
  const lease = new Lease({ path, nonce: me.nonce, clock, onLost });
  return {
    takenFrom,
    confirm: () => lease.confirm(),
    release: async () => {
      lease.end();
      try {
        const current = await readHolderFile(path);
        if (current?.holder?.nonce === me.nonce) await rm(path, { force: true });
      } finally {
        // The socket is released last, so that its next owner does not find this lock file.
        await releaseSocket(socket);
      }
    },
  };
}

/**
 * Rejects with `locked` while another run writes to the lake of `directory`. Does not acquire the lock. A missing directory is
 * not locked.
 */
export async function refuseIfLocked(directory: string): Promise<void> {
  const path = join(directory, 'lock.json');
  const isTaken = await unlessMissing(isSocketTaken(directory));
  if (isTaken === true) throw await socketHeldError(directory, path);
  const file = await readHolderFile(path);
  await expiredHolder(file, describeThisProcess('', 0), () => fileSystemNow(directory));
}

/**
 * Rejects with `locked` if the holder of a lock file may be alive. Resolves with a holder on another host or in another container
 * whose lease has expired, and with undefined for a holder that has ended or is not known.
 */
async function expiredHolder(
  file: HolderFile | undefined,
  me: LockHolder,
  nowMs: () => number | Promise<number | undefined>,
): Promise<LockHolder | undefined> {
  const holder = file?.holder;
  if (file === undefined || holder === undefined) return undefined;
  const state = processState(holder, me);
  if (state === 'here') throw heldHereError(holder);
  if (state === 'gone') return undefined;
  if (isExpired(file, await nowMs())) return holder;
  throw new CryptodlError(
    'locked',
    `a run on another host or in another container holds the lock of this lake: ${holderText(holder)}`,
    {
      hint: `wait for it to end (--wait-lock); if it was killed, its lock expires ${LEASE_MS / 1000} s after its last heartbeat`,
    },
  );
}

/** A holder binds its socket before it writes the file, so the file may not name it yet. */
async function socketHeldError(directory: string, path: string): Promise<CryptodlError> {
  const holder = (await readHolderFile(path))?.holder;
  if (holder !== undefined && processState(holder, describeThisProcess('', 0)) !== 'gone')
    return heldHereError(holder);
  // ss(8) shows the first characters of the name.
  const prefix = (await nameOf(directory)).slice(0, 24);
  return new CryptodlError(
    'locked',
    `a process on this machine holds the lock socket of this lake, and ${path} does not name it`,
    { hint: `find that process, as root: ss --unix --listening --processes | grep ${prefix}` },
  );
}

function heldHereError(holder: LockHolder): CryptodlError {
  return new CryptodlError('locked', `another run is writing to this lake: ${holderText(holder)}`, {
    hint: 'wait for it to end, or stop it, or write to another --out',
  });
}

/** `pid 12 on host since 2024-01-15T12:00:00.000Z (cryptodl vision)` */
export const holderText = (holder: LockHolder): string =>
  `pid ${holder.pid} on ${holder.host} since ${holder.startedAt} (${holder.command})`;
