/**
 * Temporary files and folders outside of the locked part of a lake: their names, and the removal of those of killed processes. A name
 * contains the process, so that a file is known as that of an ended process from the moment it exists, and a random UUID, so that
 * another user of a shared folder cannot make it first.
 */
import { createHash, randomUUID } from 'node:crypto';
import { lstat, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { absolutePath } from '../text/printable.js';
import { makeFolder } from './disk.js';
import { processState, thisProcess, type RunningProcess } from './running-process.js';

/** The folder for temporary files: `--temp-dir`, or that of the system. */
export function tempFolderOf(tempDir: string | undefined, home: string | undefined): string {
  return tempDir === undefined ? tmpdir() : absolutePath(tempDir, home);
}

/** A new path in `folder`. `what` consists of lower-case letters, digits and `-`. Nothing is created. */
export const tempPath = (folder: string, what: string): string => join(folder, tempName(what));

function tempName(what: string): string {
  const { host, bootId, pidNamespace, pid, processStart } = shortened(thisProcess());
  return `cryptodl-${what}-${[host, bootId, pidNamespace, pid, processStart, randomUUID()].join('.')}`;
}

/** Creates a folder for this user only, and its parents. Its path is a `tempPath`, or in one. */
export async function makeTempFolder(path: string): Promise<void> {
  await makeFolder(dirname(path));
  await makeFolder(path, 0o700);
}

/** A new path beside a file that does not have its content yet. Removes what killed processes left there. Readers skip names that begin with a dot. */
export async function stagedBeside(path: string): Promise<string> {
  const folder = dirname(path);
  await removeLeftovers(folder);
  return join(folder, `.${tempName('staged')}.partial`);
}

const NAME =
  /^\.?cryptodl-(?<what>[a-z][a-z0-9-]*)-(?<host>[0-9a-f]{8})\.(?<bootId>[0-9a-f]{8})?\.(?<pidNamespace>[0-9a-f]{8})?\.(?<pid>\d{1,10})\.(?<processStart>\d*)\.[0-9a-f-]{36}(?:\.partial)?$/;

/**
 * Removes the temporary files and folders of this user in `folder` whose processes have ended, and those of which `isDead` proves that by
 * what they are for. A missing or unreadable folder has none. What cannot be removed stays for the next command.
 */
export async function removeLeftovers(
  folder: string,
  isDead: (what: string) => boolean = () => false,
): Promise<void> {
  const me = shortened(thisProcess());
  for (const name of await readdir(folder).catch(() => [])) {
    const { what = '', pid, ...found } = NAME.exec(name)?.groups ?? {};
    if (pid === undefined) continue;
    const { host = '', bootId = '', pidNamespace = '', processStart = '' } = found;
    const owner = { host, bootId, pidNamespace, processStart, pid: Number(pid) };
    if (!isDead(what) && processState(owner, me) !== 'gone') continue;
    const path = join(folder, name);
    try {
      const facts = await lstat(path);
      const isOurs = facts.uid === (process.getuid?.() ?? facts.uid);
      if (isOurs && (facts.isFile() || facts.isDirectory())) await rm(path, { recursive: true, force: true });
    } catch {
      continue;
    }
  }
}

/** Digests in place of names: they are short, and legal in the name of a file. */
function shortened({ host, bootId, pidNamespace, ...others }: RunningProcess): RunningProcess {
  return { ...others, host: digest(host), bootId: digest(bootId), pidNamespace: digest(pidNamespace) };
}

function digest(text: string): string {
  return text === '' ? '' : createHash('sha256').update(text).digest('hex').slice(0, 8);
}
