/** The errors for a lake that another process holds. */
import { processState } from '../files/running-process.js';
import { CryptodlError } from '../model/errors.js';
import type { HolderFile, LockHolder } from './lock-holder.js';
import { isExpired, LEASE_MS, describeThisProcess, readHolderFile } from './lock-holder.js';
import { nameOf } from './lock-socket.js';

/**
 * Rejects with `locked` if the holder of a lock file may be alive. Resolves with a holder on another host or in another container
 * whose lease has expired, and with undefined for a holder that has ended or is not known.
 */
export async function expiredHolder(
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
export async function socketHeldError(directory: string, path: string): Promise<CryptodlError> {
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
export function holderText(holder: LockHolder): string {
  return `pid ${holder.pid} on ${holder.host} since ${holder.startedAt} (${holder.command})`;
}
