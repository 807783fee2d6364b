/** The lock of a lake: one process at a time may write to it. */
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, unlessMissing } from '../model/errors.js';
import { withClaim } from './lock-claim.js';
import { fileSystemNow, describeThisProcess, readHolderFile, isExpired, Lease } from './lock-holder.js';
import { LEASE_MS } from './lock-holder.js';
import type { LockHolder, HolderFile } from './lock-holder.js';
import { processState } from '../files/running-process.js';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

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

/** Rejects with `locked` while another run writes to the lake of `directory`. Takes no lock. A missing directory is not locked. */
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

// The lock of the kernel: an abstract unix socket for each lake (Linux only).

/** `taken`: the socket is bound already. `unknown`: it cannot be bound, for example on macOS. Else the lock of this process. */
type SocketLock = 'taken' | 'unknown' | { release(): Promise<void> };

async function releaseSocket(socket: SocketLock): Promise<void> {
  if (typeof socket === 'object') await socket.release();
}

/** The length of sun_path without the first byte. All names are this long, because only some versions of Node pad with zeros. */
const NAME_BYTES = 107;

/**
 * Binds the abstract unix socket of the directory (unix(7)). The kernel frees it when the process ends in any way. The lock is
 * valid in one network namespace. It does not keep the process running.
 */
export async function bindSocket(directory: string): Promise<SocketLock> {
  if (process.platform !== 'linux') return 'unknown';
  return listenOn(await socketName(directory));
}

/** Whether a process has bound the socket; false on platforms without abstract sockets. Does not bind it. */
async function isSocketTaken(directory: string): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const socket = connect({ path: await socketName(directory) });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

const socketName = async (directory: string): Promise<string> =>
  `\0${(await nameOf(directory)).padEnd(NAME_BYTES, '-')}`;

/** From device and inode, so that a symbolic link or another spelling of the path gives the same name. */
async function nameOf(directory: string): Promise<string> {
  const { dev, ino } = await stat(directory, { bigint: true });
  return `cryptodl-${createHash('sha256').update(`${dev}:${ino}`).digest('hex')}`;
}

function listenOn(path: string): Promise<SocketLock> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'EADDRINUSE' ? 'taken' : 'unknown');
    });
    server.listen({ path, exclusive: true }, () => {
      server.removeAllListeners('error').on('error', () => undefined);
      server.unref();
      resolve({
        release: () =>
          new Promise((closed) => {
            server.close(() => closed());
          }),
      });
    });
  });
}
