import { rm } from 'node:fs/promises';
import { acquireLock } from './lake/lock.js';
import type { Lock } from './lake/lock.js';
import type { Session } from './session.js';

/** Takes the lake's lock and clears what a killed run left in the spool. Rejects with `locked`, or with a disk error. */
export async function openLake(session: Session, command: string): Promise<Lock> {
  const lock = await acquireLock(session.paths.own, { command, now: session.clock.now() });
  await rm(session.paths.staging, { recursive: true, force: true });
  await rm(session.runFolder, { recursive: true, force: true });
  return lock;
}
