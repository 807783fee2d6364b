/**
 * Checks the folder of a lake (writable, fast, with free space), its lock, and the temporary files of killed runs. Leaves no
 * files behind.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Dirent } from 'node:fs';
import type { BackingTrial } from '../lake/backing.js';
import type { LakePaths } from '../lake/layout.js';
import { holderText, readLock } from '../lake/lock.js';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { bytesText } from '../model/units.js';
import { checkResult } from './check-result.js';
import type { CheckResult, Status } from './check-result.js';

export interface FolderInput {
  readonly check: string;
  readonly path: string;
  /** The path as it is printed. */
  readonly shown: string;
  readonly flag: string;
  /** The probe file is written into the first of these folders that exists; default: `path`. */
  readonly tryIn?: readonly string[];
  readonly probeBytes: number;
  /** The result when the folder is not writable. */
  readonly unwritable: { readonly status: Status; readonly next: string };
  readonly clock: Clock;
}

const PROBE_PREFIX = '.cryptodl-doctor-';

const LITTLE_ROOM_BYTES = 1e9;
const SLOW_BYTES_PER_SECOND = 2e6;

/** Resolves with `unwritable` when the folder cannot be written; warns when it is slow or has less than 1 GB free. */
export async function checkFolder(input: FolderInput): Promise<CheckResult> {
  const { check, path, shown, unwritable, flag } = input;
  try {
    const there = await nearest(path);
    const room = await freeBytes(there);
    if (there !== path) {
      await access(there, constants.W_OK | constants.X_OK);
      return roomResult(input, room, `${shown} does not exist yet; the first run creates it`, {});
    }
    const bytesPerSecond = await writeProbe(input);
    const speed = bytesText(Math.round(bytesPerSecond));
    const figures = { bytesPerSecond: Math.round(bytesPerSecond) };
    if (input.probeBytes < MEASURABLE_BYTES) return roomResult(input, room, `${shown} is writable`, {});
    if (bytesPerSecond >= SLOW_BYTES_PER_SECOND)
      return roomResult(input, room, `${shown} is written at ${speed}/s`, figures);
    const found = `${shown} is written at only ${speed}/s`;
    const next = `choose a faster disk with ${flag}`;
    return checkResult(check, 'warn', found, { next, figures });
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'unknown error') throw error;
    const found = `${shown} is not writable: ${WORDS[code] ?? 'the system refuses'} (${code})`;
    return checkResult(check, unwritable.status, found, { next: unwritable.next });
  }
}

/** The result for a lake in a bucket. A bucket that refuses the trial fails the check with its error. */
export function bucketResult(shown: string, { putMs, keepsConditions }: BackingTrial): CheckResult {
  const figures = { putMs: Math.round(putMs) };
  const found = `${shown} is written; a put takes ${figures.putMs} ms`;
  if (keepsConditions) return checkResult('out', 'ok', found, { figures });
  return checkResult('out', 'warn', `${found}; the server ignores the conditions of writes`, {
    figures,
    next: 'let only one run at a time write a series (--shard, or the workers of one queue)',
  });
}

const MEASURABLE_BYTES = 1_000_000;

const WORDS: Readonly<Record<string, string>> = {
  EROFS: 'the file system is read-only',
  EACCES: 'this user has no permission',
  EPERM: 'this user has no permission',
  ENOTDIR: 'a file stands in place of a folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
};

function roomResult(
  { check, flag }: FolderInput,
  room: number | undefined,
  found: string,
  figures: CheckResult['figures'],
): CheckResult {
  if (room === undefined)
    return checkResult(check, 'ok', `${found}; the file system does not report its free space`, { figures });
  const all = { ...figures, freeBytes: room };
  const words = `${found}; ${bytesText(room)} free`;
  if (room >= LITTLE_ROOM_BYTES) return checkResult(check, 'ok', words, { figures: all });
  return checkResult(check, 'warn', words, {
    figures: all,
    next: `free some space, or choose another ${flag}`,
  });
}

/** The folder, or its nearest parent that exists. Throws ENOTDIR where a file stands in place of a folder. */
async function nearest(path: string): Promise<string> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if ((await stat(folder)).isDirectory()) return folder;
      throw Object.assign(new Error(`${folder} is not a folder`), { code: 'ENOTDIR' });
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}

/** Undefined on file systems that report a size of 0, as some network file systems do. */
async function freeBytes(folder: string): Promise<number | undefined> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return blocks === 0 ? undefined : bavail * bsize;
}

/** Writes, syncs and removes a probe file. Resolves with bytes per second. */
async function writeProbe({ path, tryIn = [path], probeBytes, clock }: FolderInput): Promise<number> {
  const folder = await firstThere(tryIn, path);
  const file = join(folder, `${PROBE_PREFIX}${randomUUID()}`);
  // File systems with compression would store zeros faster.
  const bytes = randomBytes(probeBytes);
  const begun = clock.monotonic();
  try {
    const handle = await open(file, 'wx');
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return (probeBytes / Math.max(1, clock.monotonic() - begun)) * 1000;
  } finally {
    await rm(file, { force: true });
  }
}

async function firstThere(folders: readonly string[], otherwise: string): Promise<string> {
  for (const folder of folders) {
    const facts = await stat(folder).catch(() => undefined);
    if (facts?.isDirectory() === true) return folder;
  }
  return otherwise;
}

// The lock, and the temporary files of killed runs.

/** Warns while another run holds the lock. */
export async function checkLock({ internal }: LakePaths): Promise<CheckResult> {
  const lock = await readLock(internal);
  if (lock === undefined) return checkResult('lock', 'ok', 'no run writes to this lake');
  const { path, holder } = lock;
  if (holder === undefined)
    return checkResult('lock', 'warn', `the lock file ${path} cannot be read`, {
      next: `if no run writes to this lake, remove ${path}`,
    });
  const owner = holderText(holder);
  if (lock.state === 'gone')
    return checkResult(
      'lock',
      'ok',
      `no run writes to this lake; the last holder of the lock, ${owner}, has ended`,
    );
  if (lock.state === 'expired') {
    const found = `no run writes to this lake; the next run takes over the lock of ${owner}, which sends no heartbeat`;
    return checkResult('lock', 'ok', found);
  }
  const figures = {
    pid: holder.pid,
    host: holder.host,
    startedAt: holder.startedAt,
    command: holder.command,
  };
  if (lock.state === 'here')
    return checkResult('lock', 'warn', `a run is writing to this lake: ${owner}`, {
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
  const internal = (await entriesOf(paths.internal, false)).filter(({ name }) =>
    /^(commit-|lock-.*\.(claim|tmp)$)/.test(name),
  );
  const probes = (await entriesOf(paths.root, false)).filter(({ name }) => name.startsWith(PROBE_PREFIX));
  const spools = runFolder.startsWith(paths.staging) ? [paths.staging] : [paths.staging, runFolder];
  const spooled = (await Promise.all(spools.map((folder) => entriesOf(folder, true)))).flat();
  const files = [...internal, ...probes, ...spooled];
  if (files.length === 0) return checkResult('leftovers', 'ok', 'none');
  const sizes = await Promise.all(files.map((file) => sizeOf(join(file.parentPath, file.name))));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const commits = internal.filter(({ name }) => /^commit-.*\.json$/.test(name)).length;
  const unfinished = commits === 0 ? '' : `, ${commits} of them an unfinished commit`;
  const many = files.length === 1 ? '1 file' : `${files.length} files`;
  return checkResult('leftovers', 'warn', `${many}, ${bytesText(bytes)}, of a killed run${unfinished}`, {
    figures: { files: files.length, bytes, commits },
    next:
      probes.length === files.length
        ? `remove ${probes.map(({ parentPath, name }) => join(parentPath, name)).join(' ')}`
        : `nothing to do: the next run completes commits and removes the rest${probes.length === 0 ? '' : `, except ${probes.map(({ name }) => name).join(', ')}, which you can remove`}`,
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
