import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../model/clock.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { makeFolder } from '../files/make-folder.js';
import { withClaim } from './lock-claim.js';
import {
  describeThisProcess,
  readHolderFile,
  holderState,
  type HolderFile,
  type HolderState,
  type LockHolder,
} from './lock-holder.js';
import { fileSystemNow, HEARTBEAT_MS, isExpired, Lease, LEASE_MS } from './lock-lease.js';
import { bindSocket, isSocketTaken, socketNamePrefix, type SocketLock } from './lock-socket.js';

export interface Lock {
  /** The holder on another host or in another container whose lock was not renewed any more; undefined: the lake was free. */
  readonly takenFrom: LockHolder | undefined;
  /** To be called before every commit. Rejects with `locked` when another run has taken the lake over. */
  confirm(): Promise<void>;
  /** Whether another run has taken the lake over, as far as this one has noticed. */
  readonly isLost: boolean;
  /** Frees the lake; a second call does nothing. */
  release(): Promise<void>;
}

export interface LockRequest {
  readonly command: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'timer'>;
  /** Called once, with `locked`, when another run has taken the lake over. */
  readonly onLost: (error: CryptodlError) => void;
}

const HOLDER_POLL_MS = 20;
const HOLDER_POLLS = 15;

/**
 * The right to write the lake of `directory` (`<out>/.cryptodl`, created if missing).
 * Between the processes of one machine the kernel decides, so a killed holder never blocks the next run.
 * `lock.json` tells people who it is, and holds off other hosts, containers and platforms as long as it is renewed.
 *
 * Rejects with `locked`, naming the holder, also when this process holds the lock already.
 */
export async function acquireLock(directory: string, { command, clock, onLost }: LockRequest): Promise<Lock> {
  await makeFolder(directory);
  const path = join(directory, 'lock.json');
  const me = { ...(await describeThisProcess(command, clock.now())), heartbeatMs: HEARTBEAT_MS };
  const socket = await bindSocket(directory);
  if (socket === 'taken') throw await socketHeldError(directory, path);
  let taken: Taken;
  try {
    taken = await withClaim(directory, me, (claim, nowMs) =>
      takeFile(path, { claim, nowMs, me, kernelDecides: socket !== 'unknown' }),
    );
  } catch (error) {
    await releaseSocket(socket);
    throw error;
  }
  const lease = new Lease({ path, nonce: me.nonce, clock, onLost });
  return {
    takenFrom: taken.from,
    confirm: () => lease.confirm(),
    get isLost() {
      return lease.isLost;
    },
    release: async () => {
      lease.end();
      try {
        const current = await readHolderFile(path);
        if (current?.holder?.nonce === me.nonce) await rm(path, { force: true });
      } finally {
        // Last: whoever gets the socket next must not find our file.
        await releaseSocket(socket);
      }
    },
  };
}

/**
 * Rejects with `locked`, as `acquireLock` would, while another run writes the lake of `directory`. Takes nothing; a directory
 * that is not there is not locked.
 */
export async function refuseIfLocked(directory: string): Promise<void> {
  const path = join(directory, 'lock.json');
  try {
    if (await isSocketTaken(directory)) throw await socketHeldError(directory, path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return;
    throw error;
  }
  const lock = await readLock(directory);
  if (lock?.holder === undefined) return;
  if (lock.state === 'here') throw heldHereError(lock.holder);
  if (lock.state === 'elsewhere') throw heldElsewhereError(lock.holder, path);
}

interface Taken {
  readonly from: LockHolder | undefined;
}

interface Taking {
  readonly claim: string;
  /** By the clock of the file system. */
  readonly nowMs: number;
  readonly me: LockHolder;
  readonly kernelDecides: boolean;
}

/** Makes the claim the lock, unless the lock belongs to a process that may be alive. Only under a claim. */
async function takeFile(path: string, { claim, nowMs, me, kernelDecides }: Taking): Promise<Taken> {
  const current = await readHolderFile(path);
  if (current !== undefined && current.holder === undefined && !kernelDecides) throw unreadableError(path);
  const state = current?.holder && (await lockState(current, me, nowMs));
  if (current?.holder !== undefined) {
    if (state === 'here') throw heldHereError(current.holder);
    if (state === 'elsewhere') throw heldElsewhereError(current.holder, path);
  }
  await rename(claim, path);
  return { from: state === 'expired' ? current?.holder : undefined };
}

/** `expired`: on another host or in another container, and not renewed any more. */
type LockState = HolderState | 'expired';

async function lockState(file: HolderFile, me: LockHolder, nowMs: number | undefined): Promise<LockState> {
  const state = file.holder === undefined ? 'gone' : await holderState(file.holder, me);
  return state === 'elsewhere' && isExpired(file, nowMs) ? 'expired' : state;
}

/** A lock file as it lies there; `holder` is undefined when it cannot be read. */
export interface LockFile {
  readonly path: string;
  readonly holder: LockHolder | undefined;
  readonly state: LockState | undefined;
}

/** Who holds the lock of `directory`, without taking it; undefined when there is no lock. */
export async function readLock(directory: string): Promise<LockFile | undefined> {
  const path = join(directory, 'lock.json');
  const file = await readHolderFile(path);
  if (file === undefined) return undefined;
  const { holder } = file;
  if (holder === undefined) return { path, holder, state: undefined };
  const me = await describeThisProcess('', 0);
  const state = await holderState(holder, me);
  if (state !== 'elsewhere') return { path, holder, state };
  return { path, holder, state: await lockState(file, me, await fileSystemNow(directory)) };
}

/** The holder binds its socket a moment before it writes its file. */
async function socketHeldError(directory: string, path: string): Promise<CryptodlError> {
  const me = await describeThisProcess('', 0);
  for (let poll = 0; poll < HOLDER_POLLS; poll += 1) {
    const holder = (await readHolderFile(path))?.holder;
    if (holder !== undefined && (await holderState(holder, me)) !== 'gone') return heldHereError(holder);
    await sleep(HOLDER_POLL_MS);
  }
  const word = await socketNamePrefix(directory);
  return new CryptodlError(
    'locked',
    `a process on this machine holds the lock socket of this lake, and ${path} does not name it`,
    { hint: `find that process, as root: ss --unix --listening --processes | grep ${word}` },
  );
}

async function releaseSocket(socket: SocketLock): Promise<void> {
  if (typeof socket === 'object') await socket.release();
}

function heldHereError(holder: LockHolder): CryptodlError {
  return new CryptodlError('locked', `another run is writing this lake: ${holderText(holder)}`, {
    hint: 'wait for it to end, or stop it, or write to another --out',
  });
}

function heldElsewhereError(holder: LockHolder, path: string): CryptodlError {
  return new CryptodlError(
    'locked',
    `a run on another host or container holds this lake: ${holderText(holder)}`,
    {
      hint:
        holder.heartbeatMs === undefined
          ? `if that run is surely gone, remove ${path}`
          : `wait for it to end (--wait-lock); if it was killed, its lock is free ${LEASE_MS / 1000} s after its last heartbeat`,
    },
  );
}

function unreadableError(path: string): CryptodlError {
  return new CryptodlError('locked', `the lock file ${path} cannot be read`, {
    hint: `if no other run writes this lake, remove ${path}`,
  });
}

export function holderText(holder: LockHolder): string {
  return `pid ${holder.pid} on ${holder.host} since ${holder.startedAt} (${holder.command})`;
}
