/** The folder of a mirror: made for one command, removed at its end. The next command removes those of killed ones. */
import { lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { FOLDERS } from '../lake/layout.js';
import { describeThisProcess, holderState, readHolderFile } from '../lake/lock-holder.js';
import type { LockHolder } from '../lake/lock-holder.js';
import { CryptodlError, errnoOf, toCryptodlError } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';

const START = 'cryptodl-mirror-';
/** In the folder of the files that are not complete. */
const OWNER = join(FOLDERS.internal, 'mirror', 'owner.json');

/**
 * Creates the folder in `tempDir`, by default in the temporary folder of the system. First removes the folders of this user there whose
 * processes have ended. Rejects with `disk` if `tempDir` cannot be used.
 */
export async function makeMirrorFolder(tempDir: string | undefined, nowMs: number): Promise<string> {
  const parent = tempDir ?? tmpdir();
  const me = await describeThisProcess('cryptodl', nowMs);
  try {
    await makeFolder(parent);
    await removeLeftovers(parent, me);
    const root = await mkdtemp(join(parent, START));
    await mkdir(dirname(join(root, OWNER)), { recursive: true });
    await writeFile(join(root, OWNER), JSON.stringify(me));
    return root;
  } catch (error) {
    if (toCryptodlError(error).code === 'disk-full') throw error;
    const flag = tempDir === undefined ? 'the temporary folder' : '--temp-dir';
    const why = reasonOf(errnoOf(error));
    throw new CryptodlError('disk', `${flag} ${parent} cannot hold the mirror of the lake (${why})`, {
      cause: error,
      hint: 'choose a writable --temp-dir',
    });
  }
}

export async function removeMirrorFolder(root: string): Promise<void> {
  // The owner is removed last: a folder that is only partly removed still has it.
  for (const name of await readdir(root).catch(() => []))
    if (name !== FOLDERS.internal) await rm(join(root, name), { recursive: true, force: true });
  for (const name of await readdir(join(root, FOLDERS.internal)).catch(() => []))
    if (name !== basename(dirname(OWNER)))
      await rm(join(root, FOLDERS.internal, name), { recursive: true, force: true });
  await rm(root, { recursive: true, force: true });
}

/** A folder that cannot be examined or removed stays: it is not ours, or the next command tries again. */
async function removeLeftovers(parent: string, me: LockHolder): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(START)) continue;
    const root = join(parent, name);
    try {
      const facts = await lstat(root);
      if (!facts.isDirectory() || facts.uid !== process.getuid?.()) continue;
      const owner = (await readHolderFile(join(root, OWNER)))?.holder;
      if (owner !== undefined && (await holderState(owner, me)) === 'gone') await removeMirrorFolder(root);
    } catch {
      continue;
    }
  }
}
