/** The process that holds a lock, and the files that describe it. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, lstat, rm, stat, writeFile } from 'node:fs/promises';
import { unlessMissing } from '../model/errors.js';
import { thisProcess, type RunningProcess } from '../files/running-process.js';
import { fieldsOf, parseJson } from '../text/json.js';
import { join } from 'node:path';

export interface LockHolder extends RunningProcess {
  readonly command: string;
  /** ISO 8601, UTC, by the holder's clock. */
  readonly startedAt: string;
  /** Unique for every lock. */
  readonly nonce: string;
}

export interface HolderFile {
  /** Undefined for invalid content, and for anything but a regular file. */
  readonly holder: LockHolder | undefined;
  /** Time of the last write, by the clock of the file system. */
  readonly mtimeMs: number;
}

/** Reads a lock file; undefined when it does not exist. Does not wait for a pipe or follow a symbolic link. */
export async function readHolderFile(path: string): Promise<HolderFile | undefined> {
  const there = await unlessMissing(lstat(path));
  if (there?.isFile() === false) return { holder: undefined, mtimeMs: there.mtimeMs };
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = there && (await unlessMissing(open(path, flags)));
  if (file === undefined) return undefined;
  try {
    // The open file is used because NFS answers lstat(2) from a cache, but requests attributes from the server on open.
    const { mtimeMs } = await file.stat();
    return { holder: parseHolder(await file.readFile('utf8')), mtimeMs };
  } finally {
    await file.close();
  }
}

/** This process as a holder. */
export function describeThisProcess(command: string, nowMs: number): LockHolder {
  return { ...thisProcess(), command, startedAt: new Date(nowMs).toISOString(), nonce: randomUUID() };
}

const TEXTS = ['host', 'command', 'startedAt', 'bootId', 'processStart', 'pidNamespace', 'nonce'] as const;

/** Undefined for invalid content. */
export function parseHolder(text: string): LockHolder | undefined {
  const fields = fieldsOf(parseJson(text));
  const isProcess = Number.isSafeInteger(fields['pid']) && Number(fields['pid']) > 0;
  const isHolder = isProcess && TEXTS.every((name) => typeof fields[name] === 'string');
  return isHolder ? (fields as unknown as LockHolder) : undefined;
}

/** A lock of another host or container expires this long after its last renewal. */
export const LEASE_MS = 60_000;
const MOST_AHEAD_MS = 3_600_000;

/** The time of the file system of `directory` in epoch milliseconds; undefined if the directory is not writable. */
export async function fileSystemNow(directory: string): Promise<number | undefined> {
  // The name is that of a claim, so the next run removes it if this process is killed.
  const probe = join(directory, `lock-${randomUUID()}.tmp`);
  try {
    await writeFile(probe, '', { flag: 'wx' });
    return (await stat(probe)).mtimeMs;
  } catch {
    return undefined;
  } finally {
    await rm(probe, { force: true }).catch(() => undefined);
  }
}

/** Whether the lease of a lock file has expired; false if `nowMs` is undefined. */
export function isExpired({ mtimeMs }: Pick<HolderFile, 'mtimeMs'>, nowMs: number | undefined): boolean {
  if (nowMs === undefined) return false;
  // A time more than an hour ahead is not a renewal: it was set by hand, or the clock was set back after it.
  const ageMs = nowMs - mtimeMs;
  return ageMs > LEASE_MS || ageMs < -MOST_AHEAD_MS;
}
