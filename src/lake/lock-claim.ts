import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseHolder, stateOf, type LockHolder } from './lock-holder.js';

/** Every claim has a name of its own, so that removing a dead one can never hit a living one. */
const CLAIM = /^lock-[0-9a-f-]{36}\.(claim|tmp)$/;
const WAIT_MS = 10;
const GIVE_UP_AFTER_MS = 3000;
/** A claim lives for milliseconds; an unreadable one of this age was left by a crash. */
const TORN_AFTER_MS = 10_000;

/**
 * Runs `work` while no other process that shares the directory is inside; `work` gets the path of a file that
 * describes `me`, to be renamed into the lock. Undefined when others kept us out for three seconds.
 *
 * Everyone first creates its claim, then lists: of two, the later one sees the earlier. Whoever sees a claim of a
 * smaller nonce steps back, so one always gets through.
 */
export async function withClaim<T>(
  directory: string,
  me: LockHolder,
  work: (claimPath: string) => Promise<T>,
): Promise<T | undefined> {
  const path = join(directory, `lock-${me.nonce}.claim`);
  const resting = join(directory, `lock-${me.nonce}.tmp`);
  try {
    await writeFile(resting, `${JSON.stringify(me)}\n`, { flag: 'wx' });
    const { mtimeMs } = await stat(resting);
    const listRivals = (): Promise<string[]> => livingRivals(directory, me, mtimeMs);
    for (let waitedMs = 0; waitedMs <= GIVE_UP_AFTER_MS; waitedMs += WAIT_MS) {
      // Looking first spares the others a claim that would step back again.
      if (!hasSmaller(await listRivals(), me)) {
        await rename(resting, path);
        const rivals = await waitWhileFirst(listRivals, me);
        if (rivals.length === 0) return await work(path);
        await rename(path, resting);
      }
      await sleep(WAIT_MS);
    }
    return undefined;
  } finally {
    await rm(path, { force: true });
    await rm(resting, { force: true });
  }
}

/** With the claim made: waits for the larger ones to step back. Resolves with what is left of the rivals. */
async function waitWhileFirst(listRivals: () => Promise<string[]>, me: LockHolder): Promise<string[]> {
  let rivals = await listRivals();
  for (let waitedMs = 0; waitedMs < GIVE_UP_AFTER_MS; waitedMs += WAIT_MS) {
    if (rivals.length === 0 || hasSmaller(rivals, me)) break;
    await sleep(WAIT_MS);
    rivals = await listRivals();
  }
  return rivals;
}

function hasSmaller(nonces: readonly string[], me: LockHolder): boolean {
  return nonces.some((nonce) => nonce < me.nonce);
}

/** The nonces of the claims that may be alive; removes those of the dead. */
async function livingRivals(directory: string, me: LockHolder, nowMs: number): Promise<string[]> {
  const living: string[] = [];
  for (const name of await readdir(directory)) {
    if (!CLAIM.test(name) || name.includes(me.nonce)) continue;
    const path = join(directory, name);
    const state = await claimState(path, me, nowMs);
    if (state === 'dead') await rm(path, { force: true });
    if (state === 'alive' && name.endsWith('.claim'))
      living.push(name.slice('lock-'.length, -'.claim'.length));
  }
  return living;
}

/** `away`: it was there when the directory was read; it may come back, so it must not be removed. */
async function claimState(path: string, me: LockHolder, nowMs: number): Promise<'alive' | 'dead' | 'away'> {
  try {
    const holder = parseHolder(await readFile(path, 'utf8'));
    if (holder !== undefined) return (await stateOf(holder, me)) === 'gone' ? 'dead' : 'alive';
    // Both stamps come from the clock of the file system.
    return nowMs - (await stat(path)).mtimeMs > TORN_AFTER_MS ? 'dead' : 'alive';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'away';
    throw error;
  }
}
