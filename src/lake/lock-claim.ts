/** Claim files: they make sure that only one process at a time takes over the lock file of a lake. */
import { readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processState } from '../files/running-process.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { LEASE_MS, readHolderFile, type LockHolder } from './lock-holder.js';

/** Every claim has a unique name, so that removing the claim of a dead process never removes a live one. */
const CLAIM = /^lock-[0-9a-f-]{36}\.(claim|tmp)$/;
const WAIT_MS = 10;
const GIVE_UP_AFTER_MS = 3000;
/** A claim exists for a few seconds at most; an unreadable one of this age was left by a crash. */
const TORN_AFTER_MS = 10_000;

interface Rival {
  readonly nonce: string;
  readonly path: string;
}

/**
 * Runs `work` in one process at a time, among all processes that use the directory. `work` gets the path of a file that describes
 * `me`, to be renamed to the lock file, and the time of the file system. Rejects with `locked` when other claims prevent this for
 * three seconds.
 *
 * Every process lists the claims again after it has created its own, so the later one of two processes sees the claim of the
 * earlier one. A process that sees a claim with a smaller nonce withdraws its own, so one process always proceeds.
 */
export async function withClaim<T>(
  directory: string,
  { me, clock }: { readonly me: LockHolder; readonly clock: Pick<Clock, 'monotonic' | 'sleep'> },
  work: (claimPath: string, nowMs: number) => Promise<T>,
): Promise<T> {
  const path = join(directory, `lock-${me.nonce}.claim`);
  const resting = join(directory, `lock-${me.nonce}.tmp`);
  let rivals: Rival[] = [];
  try {
    await writeFile(resting, `${JSON.stringify(me)}\n`, { flag: 'wx' });
    const { mtimeMs } = await stat(resting);
    const listRivals = (): Promise<Rival[]> => livingRivals(directory, me, mtimeMs);
    // The limit is a time, because reading hundreds of claims takes longer than the wait between two attempts.
    const giveUpAt = clock.monotonic() + GIVE_UP_AFTER_MS;
    for (;;) {
      // A list before the claim avoids a claim that would be withdrawn at once.
      rivals = await listRivals();
      if (!hasSmaller(rivals, me)) {
        await rename(resting, path);
        rivals = await listRivals();
        // Processes with larger nonces withdraw their claims.
        while (rivals.length > 0 && !hasSmaller(rivals, me) && clock.monotonic() < giveUpAt) {
          await clock.sleep(WAIT_MS);
          rivals = await listRivals();
        }
        if (rivals.length === 0) return await work(path, mtimeMs);
        await rename(path, resting);
      }
      if (clock.monotonic() > giveUpAt) throw contendedError(rivals);
      await clock.sleep(WAIT_MS);
    }
  } catch (error) {
    // Another process has removed the claim as too old: this process was suspended.
    if (errnoOf(error) === 'ENOENT') throw contendedError(rivals);
    throw error;
  } finally {
    await rm(path, { force: true });
    await rm(resting, { force: true });
  }
}

function contendedError(rivals: readonly Rival[]): CryptodlError {
  const [first] = rivals;
  const where = first === undefined ? '' : `: ${first.path}`;
  return new CryptodlError('locked', `other runs are acquiring the lock of this lake${where}`, {
    hint: `try again; a claim that still exists after ${LEASE_MS / 1000} s belongs to no run and can be removed`,
  });
}

const hasSmaller = (rivals: readonly Rival[], me: LockHolder): boolean =>
  rivals.some(({ nonce }) => nonce < me.nonce);

/** The claims of processes that may be alive. Removes the claims of the others. */
async function livingRivals(directory: string, me: LockHolder, nowMs: number): Promise<Rival[]> {
  const living: Rival[] = [];
  for (const name of await readdir(directory)) {
    if (!CLAIM.test(name) || name.includes(me.nonce)) continue;
    const path = join(directory, name);
    const state = await claimState(path, me, nowMs);
    const isLiving = state === 'alive' || (state === 'dead' && !(await isRemoved(path)));
    if (isLiving && name.endsWith('.claim'))
      living.push({ path, nonce: name.slice('lock-'.length, -'.claim'.length) });
  }
  return living;
}

/** `away`: the claim existed when the directory was listed; it may reappear, so it must not be removed. */
async function claimState(path: string, me: LockHolder, nowMs: number): Promise<'alive' | 'dead' | 'away'> {
  const file = await readHolderFile(path);
  if (file === undefined) return 'away';
  // Both times come from the clock of the file system.
  const ageMs = nowMs - file.mtimeMs;
  if (file.holder === undefined) return ageMs > TORN_AFTER_MS ? 'dead' : 'alive';
  return ageMs > LEASE_MS || processState(file.holder, me) === 'gone' ? 'dead' : 'alive';
}

/** False if the claim cannot be removed; it can then still become the lock. */
const isRemoved = (path: string): Promise<boolean> =>
  rm(path, { force: true }).then(
    () => true,
    () => false,
  );
