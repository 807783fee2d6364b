/** Who writes the lake now, and what a run that was killed has left in it. Nothing is changed. */
import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../model/errors.js';
import type { LakePaths } from '../lake/layout.js';
import { holderText, readLock } from '../lake/lock.js';
import { bytesText } from '../model/units.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';
import { PROBE_PREFIX } from './folders.js';

export async function checkLock({ own }: LakePaths): Promise<Finding> {
  const lock = await readLock(own);
  if (lock === undefined) return finding('lock', 'ok', 'no run writes this lake');
  const { path, holder } = lock;
  if (holder === undefined)
    return finding('lock', 'warn', `the lock file ${path} cannot be read`, {
      next: `if no run writes this lake, remove ${path}`,
    });
  const who = holderText(holder);
  if (lock.state === 'gone')
    return finding('lock', 'ok', `no run writes this lake; its last lock is of ${who}, which has ended`);
  if (lock.state === 'expired') {
    const found = `no run writes this lake; the next run takes over the lock of ${who}, which has no heartbeat`;
    return finding('lock', 'ok', found);
  }
  const figures = {
    pid: holder.pid,
    host: holder.host,
    startedAt: holder.startedAt,
    command: holder.command,
  };
  if (lock.state === 'here')
    return finding('lock', 'warn', `a run is writing this lake: ${who}`, {
      figures,
      next: 'wait for it to end, or stop it; another run ends with exit code 6 meanwhile',
    });
  return finding('lock', 'warn', `a run on another host or in another container holds it: ${who}`, {
    figures,
    next:
      holder.heartbeatMs === undefined
        ? `if that run is surely gone, remove ${path}`
        : 'wait for it to end; if it was killed, the next run takes the lake over within a minute or two',
  });
}

export interface LeftoverQuestion {
  readonly paths: LakePaths;
  /** Spool of runs; in the lake or elsewhere. */
  readonly runFolder: string;
  /** A run is at work: what lies there is its own. */
  readonly isLocked: boolean;
}

export async function checkLeftovers({ paths, runFolder, isLocked }: LeftoverQuestion): Promise<Finding> {
  if (isLocked)
    return finding('leftovers', 'ok', 'not looked for: what is there belongs to the run that writes');
  const own = (await entriesOf(paths.own, false)).filter(({ name }) =>
    /^(commit-|lock-.*\.(claim|tmp)$)/.test(name),
  );
  const probes = (await entriesOf(paths.root, false)).filter(({ name }) => name.startsWith(PROBE_PREFIX));
  const spools = runFolder.startsWith(paths.staging) ? [paths.staging] : [paths.staging, runFolder];
  const spooled = (await Promise.all(spools.map((folder) => entriesOf(folder, true)))).flat();
  const files = [...own, ...probes, ...spooled];
  if (files.length === 0) return finding('leftovers', 'ok', 'none');
  const sizes = await Promise.all(files.map((file) => sizeOf(join(file.parentPath, file.name))));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const commits = own.filter(({ name }) => /^commit-.*\.json$/.test(name)).length;
  const begun = commits === 0 ? '' : `, ${commits} of them a commit that was begun`;
  const many = files.length === 1 ? '1 file' : `${files.length} files`;
  return finding('leftovers', 'warn', `${many}, ${bytesText(bytes)}, of a run that was killed${begun}`, {
    figures: { files: files.length, bytes, commits },
    next:
      probes.length === files.length
        ? `remove ${probes.map(({ parentPath, name }) => join(parentPath, name)).join(' ')}`
        : 'the next run finishes and clears them',
  });
}

async function entriesOf(folder: string, recursive: boolean): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { recursive, withFileTypes: true });
    return entries.filter((entry) => entry.isFile());
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(errnoOf(error))) return [];
    throw error;
  }
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
