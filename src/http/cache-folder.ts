/** The folder of the response cache: the names of its copies, and the removal of old ones. */
import { createHash } from 'node:crypto';
import { lstat, lutimes, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeLeftovers } from '../files/temp-files.js';

/** Names of copies. Of other files, only temporary files of ended processes are removed. */
const COPY_NAME = /^[0-9a-f]{40}\.json\.gz$/;
/** The folder was last cleaned at the modification time of this file. A look at thousands of copies in each run would take too long. */
const PRUNED = 'pruned';
const PRUNE_EVERY_MS = 86_400_000;

export function copyPath(folder: string, name: string): string {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 40);
  return join(folder, `${digest}.json.gz`);
}

/** Removes old copies, at most once a day. `nowMs`: the time of the machine. Rejects with the error of the system. */
export async function pruneCopies(folder: string, nowMs: number, maxAgeMs: number): Promise<void> {
  const note = join(folder, PRUNED);
  const pruned = await lstat(note).catch(() => undefined);
  // The absolute difference, because a clock that was wrong once must not stop the cleaning for years.
  if (pruned !== undefined && Math.abs(nowMs - pruned.mtimeMs) <= PRUNE_EVERY_MS) return;
  // A folder that is a link is not cleaned, because the link may lead to foreign files.
  if ((await realpath(folder)) !== join(await realpath(dirname(folder)), basename(folder))) return;
  await removeLeftovers(folder);
  for (const name of await readdir(folder)) {
    if (!COPY_NAME.test(name)) continue;
    const path = join(folder, name);
    const facts = await lstat(path).catch(() => undefined);
    if (facts?.isFile() === true && nowMs - facts.mtimeMs > maxAgeMs) await rm(path, { force: true });
  }
  // An existing file of that name keeps its content.
  await writeFile(note, '', { flag: 'wx' }).catch(() => undefined);
  await lutimes(note, new Date(nowMs), new Date(nowMs));
}
