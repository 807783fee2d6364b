/** Whether a folder can be written, how fast, and how much room it has. What is not there is not made. */
import { randomBytes, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { bytesText } from '../model/units.js';
import { finding } from './finding.js';
import type { Finding, Status } from './finding.js';

export interface FolderQuestion {
  readonly check: string;
  readonly path: string;
  /** As it is shown. */
  readonly shown: string;
  readonly flag: string;
  /** Where in it a file is tried: the first of these that is there. The folder itself when nothing is said. */
  readonly tryIn?: readonly string[];
  readonly probeBytes: number;
  /** What it is when it cannot be written, and what that means. */
  readonly unwritable: { readonly status: Status; readonly next: string };
  readonly clock: Clock;
}

export const PROBE_PREFIX = '.cryptodl-doctor-';

const LITTLE_ROOM_BYTES = 1e9;
const SLOW_BYTES_PER_SECOND = 2e6;

export async function checkFolder(question: FolderQuestion): Promise<Finding> {
  const { check, path, shown, unwritable, flag } = question;
  try {
    const there = await nearest(path);
    const room = await freeBytes(there);
    if (there !== path) {
      await access(there, constants.W_OK | constants.X_OK);
      return roomFinding(question, room, `${shown} is not there yet, the first run makes it`, {});
    }
    const bytesPerSecond = await writeProbe(question);
    const speed = bytesText(Math.round(bytesPerSecond));
    const figures = { bytesPerSecond: Math.round(bytesPerSecond) };
    if (question.probeBytes < MEASURABLE_BYTES)
      return roomFinding(question, room, `${shown} can be written`, {});
    if (bytesPerSecond >= SLOW_BYTES_PER_SECOND)
      return roomFinding(question, room, `${shown} takes ${speed}/s`, figures);
    const found = `${shown} takes only ${speed}/s`;
    const next = `choose a faster disk with ${flag}`;
    return finding(check, 'warn', found, { next, figures });
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'unknown error') throw error;
    const found = `${shown} cannot be written: ${WORDS[code] ?? 'the system says no'} (${code})`;
    return finding(check, unwritable.status, found, { next: unwritable.next });
  }
}

const MEASURABLE_BYTES = 1_000_000;

const WORDS: Readonly<Record<string, string>> = {
  EROFS: 'its file system is read-only',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  ENOTDIR: 'a file is in the way',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
};

function roomFinding(
  { check, flag }: FolderQuestion,
  room: number | undefined,
  found: string,
  figures: Finding['figures'],
): Finding {
  if (room === undefined)
    return finding(check, 'ok', `${found}; how much room it has is not told`, { figures });
  const all = { ...figures, freeBytes: room };
  const words = `${found}; ${bytesText(room)} free`;
  if (room >= LITTLE_ROOM_BYTES) return finding(check, 'ok', words, { figures: all });
  return finding(check, 'warn', words, { figures: all, next: `make room, or choose another ${flag}` });
}

/** The folder, or the nearest one above it that is there. Throws ENOTDIR where a file is in the way. */
async function nearest(path: string): Promise<string> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if ((await stat(folder)).isDirectory()) return folder;
      throw Object.assign(new Error(`${folder} is no folder`), { code: 'ENOTDIR' });
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}

/** Undefined: some network file systems do not tell. */
async function freeBytes(folder: string): Promise<number | undefined> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return blocks === 0 ? undefined : bavail * bsize;
}

/** Bytes per second until they are on the disk. The file is gone afterwards. */
async function writeProbe({ path, tryIn = [path], probeBytes, clock }: FolderQuestion): Promise<number> {
  const folder = await firstThere(tryIn, path);
  const file = join(folder, `${PROBE_PREFIX}${randomUUID()}`);
  // File systems that pack would gain speed from zeros.
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
