/** Checks the lock of a lake and the temporary files of killed runs. Changes nothing. */
import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../model/errors.js';
import type { LakePaths } from '../lake/layout.js';
import { holderText, readLock } from '../lake/lock.js';
import { bytesText } from '../model/units.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';
import { PROBE_PREFIX } from './check-folder.js';

/** Warns while another run holds the lock. */
export async function checkLock({ own }: LakePaths): Promise<CheckResult> {
  const lock = await readLock(own);
  if (lock === undefined) return checkResult('lock', 'ok', 'no run writes this lake');
  const { path, holder } = lock;
  if (holder === undefined)
    return checkResult('lock', 'warn', `the lock file ${path} cannot be read`, {
      next: `if no run writes this lake, remove ${path}`,
    });
  const owner = holderText(holder);
  if (lock.state === 'gone')
    return checkResult(
      'lock',
      'ok',
      `no run writes this lake; the last holder of the lock, ${owner}, has ended`,
    );
  if (lock.state === 'expired') {
    const found = `no run writes this lake; the next run takes over the lock of ${owner}, which sends no heartbeat`;
    return checkResult('lock', 'ok', found);
  }
  const figures = {
    pid: holder.pid,
    host: holder.host,
    startedAt: holder.startedAt,
    command: holder.command,
  };
  if (lock.state === 'here')
    return checkResult('lock', 'warn', `a run is writing this lake: ${owner}`, {
      figures,
      next: 'wait until it ends, or stop it; until then, other runs end with exit code 6',
    });
  return checkResult(
    'lock',
    'warn',
    `a run on another host or in another container holds the lock: ${owner}`,
    {
      figures,
      next:
        holder.heartbeatMs === undefined
          ? `if that run has ended, remove ${path}`
          : 'wait until it ends; if it was killed, the next run takes over the lock after one or two minutes',
    },
  );
}

export interface LeftoverInput {
  readonly paths: LakePaths;
  /** Spool folder of runs, inside or outside of the lake. */
  readonly runFolder: string;
  /** True while a run writes the lake: temporary files then belong to it. */
  readonly isLocked: boolean;
}

/** Counts the temporary files of killed runs. */
export async function checkLeftovers({ paths, runFolder, isLocked }: LeftoverInput): Promise<CheckResult> {
  if (isLocked)
    return checkResult('leftovers', 'ok', 'not checked: temporary files belong to the run that writes');
  const own = (await entriesOf(paths.own, false)).filter(({ name }) =>
    /^(commit-|lock-.*\.(claim|tmp)$)/.test(name),
  );
  const probes = (await entriesOf(paths.root, false)).filter(({ name }) => name.startsWith(PROBE_PREFIX));
  const spools = runFolder.startsWith(paths.staging) ? [paths.staging] : [paths.staging, runFolder];
  const spooled = (await Promise.all(spools.map((folder) => entriesOf(folder, true)))).flat();
  const files = [...own, ...probes, ...spooled];
  if (files.length === 0) return checkResult('leftovers', 'ok', 'none');
  const sizes = await Promise.all(files.map((file) => sizeOf(join(file.parentPath, file.name))));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const commits = own.filter(({ name }) => /^commit-.*\.json$/.test(name)).length;
  const unfinished = commits === 0 ? '' : `, ${commits} of them an unfinished commit`;
  const many = files.length === 1 ? '1 file' : `${files.length} files`;
  return checkResult('leftovers', 'warn', `${many}, ${bytesText(bytes)}, of a killed run${unfinished}`, {
    figures: { files: files.length, bytes, commits },
    next:
      probes.length === files.length
        ? `remove ${probes.map(({ parentPath, name }) => join(parentPath, name)).join(' ')}`
        : 'nothing to do: the next run completes commits and removes the rest',
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
