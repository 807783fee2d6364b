import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CryptodlError, errnoOf } from '../errors.js';
import { withClaim } from './lock-claim.js';
import {
  describeThisProcess,
  parseHolder,
  stateOf,
  type HolderState,
  type LockHolder,
} from './lock-holder.js';
import { bindSocket, isSocketTaken, type SocketLock } from './lock-socket.js';

export interface Lock {
  /** Frees the lake; a second call does nothing. */
  release(): Promise<void>;
}

const HOLDER_POLL_MS = 20;
const HOLDER_POLLS = 15;

/**
 * The right to write the lake of `directory` (`<out>/.cryptodl`, created if missing); `now` in epoch milliseconds.
 * Between the processes of one machine the kernel decides, so a killed holder never blocks the next run.
 * `lock.json` tells people who it is, and holds off other hosts, containers and platforms.
 *
 * Rejects with `locked`, naming the holder, also when this process holds the lock already.
 */
export async function acquireLock(
  directory: string,
  holder: { readonly command: string; readonly now: number },
): Promise<Lock> {
  await mkdir(directory, { recursive: true });
  const path = join(directory, 'lock.json');
  const me = await describeThisProcess(holder.command, holder.now);
  const socket = await bindSocket(directory);
  if (socket === 'taken') throw heldBy(await waitForHolder(path));
  try {
    const done = await withClaim(directory, me, (claim) => takeFile(path, claim, me, socket !== 'unknown'));
    if (done === undefined) throw heldBy(undefined);
  } catch (error) {
    await releaseSocket(socket);
    throw error;
  }
  return {
    release: async () => {
      try {
        const current = await readHolder(path);
        if (typeof current === 'object' && current.nonce === me.nonce) await rm(path, { force: true });
      } finally {
        // Last: whoever gets the socket next must not find our file.
        await releaseSocket(socket);
      }
    },
  };
}

/**
 * Rejects with `locked`, as `acquireLock` would, while another run writes the lake of `directory`. Takes nothing and writes
 * nothing; a directory that is not there is not locked.
 */
export async function refuseWriter(directory: string): Promise<void> {
  const path = join(directory, 'lock.json');
  try {
    if (await isSocketTaken(directory)) throw heldBy(await waitForHolder(path));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return;
    throw error;
  }
  const holder = await readHolder(path);
  if (typeof holder !== 'object') return;
  const state = await stateOf(holder, await describeThisProcess('', 0));
  if (state === 'here') throw heldBy(holder);
  if (state === 'elsewhere') throw heldElsewhere(holder, path);
}

/** Makes the claim the lock, unless the lock belongs to somebody who may be alive. Only under a claim. */
async function takeFile(path: string, claim: string, me: LockHolder, kernelDecides: boolean): Promise<true> {
  const current = await readHolder(path);
  if (current === 'torn' && !kernelDecides) throw unreadable(path);
  if (typeof current === 'object') {
    const state = await stateOf(current, me);
    if (state === 'here') throw heldBy(current);
    if (state === 'elsewhere') throw heldElsewhere(current, path);
  }
  await rename(claim, path);
  return true;
}

async function readHolder(path: string): Promise<LockHolder | 'torn' | undefined> {
  try {
    return parseHolder(await readFile(path, 'utf8')) ?? 'torn';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** A lock file as it lies there; `holder` is undefined when it cannot be read. */
export interface LockFile {
  readonly path: string;
  readonly holder: LockHolder | undefined;
  readonly state: HolderState | undefined;
}

/** Who holds the lock of `directory`, without taking it; undefined when there is no lock. `now` in epoch milliseconds. */
export async function readLock(directory: string, now: number): Promise<LockFile | undefined> {
  const path = join(directory, 'lock.json');
  const holder = await readHolder(path);
  if (holder === undefined) return undefined;
  if (holder === 'torn') return { path, holder: undefined, state: undefined };
  return { path, holder, state: await stateOf(holder, await describeThisProcess('', now)) };
}

/** The holder binds its socket a moment before it writes its file. */
async function waitForHolder(path: string): Promise<LockHolder | undefined> {
  for (let poll = 0; poll < HOLDER_POLLS; poll += 1) {
    const holder = await readHolder(path);
    if (typeof holder === 'object') return holder;
    await sleep(HOLDER_POLL_MS);
  }
  return undefined;
}

async function releaseSocket(socket: SocketLock): Promise<void> {
  if (typeof socket === 'object') await socket.release();
}

function heldBy(holder: LockHolder | undefined): CryptodlError {
  const who = holder === undefined ? '' : `: ${holderText(holder)}`;
  return new CryptodlError('locked', `another run is writing this lake${who}`, {
    hint: 'wait for it to end, or stop it, or write to another --out',
  });
}

function heldElsewhere(holder: LockHolder, path: string): CryptodlError {
  return new CryptodlError(
    'locked',
    `a run on another host or container holds this lake: ${holderText(holder)}`,
    {
      hint: `if that run is surely gone, remove ${path}`,
    },
  );
}

function unreadable(path: string): CryptodlError {
  return new CryptodlError('locked', `the lock file ${path} cannot be read`, {
    hint: `if no other run writes this lake, remove ${path}`,
  });
}

export function holderText(holder: LockHolder): string {
  return `pid ${holder.pid} on ${holder.host} since ${holder.startedAt} (${holder.command})`;
}
