/** Checks whether a folder is writable, how fast it is and how much space is free. Never makes a folder. */
import { randomBytes, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
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

export const PROBE_PREFIX = '.cryptodl-doctor-';

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
