/** The content of lock files: the process that holds a lock. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { thisProcess } from '../files/running-process.js';
import type { RunningProcess } from '../files/running-process.js';
import { errnoOf } from '../model/errors.js';
import { fieldsOf, parseJson } from '../text/json.js';

/** The holder of a lock, as written in the lock file. */
export interface LockHolder extends RunningProcess {
  readonly command: string;
  /** ISO 8601, UTC, by the holder's clock. */
  readonly startedAt: string;
  /** Unique for every lock. */
  readonly nonce: string;
}

/** The content and time of a lock file or claim. */
export interface HolderFile {
  /** Undefined for invalid content, and for anything but a regular file. */
  readonly holder: LockHolder | undefined;
  /** Time of the last write, by the clock of the file system. */
  readonly mtimeMs: number;
}

/** Reads a lock file; undefined when it does not exist. Does not wait for a pipe or follow a symbolic link. */
export async function readHolderFile(path: string): Promise<HolderFile | undefined> {
  try {
    const there = await lstat(path);
    if (!there.isFile()) return { holder: undefined, mtimeMs: there.mtimeMs };
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      // The open file is used because NFS answers lstat(2) from a cache, but requests attributes from the server on open.
      const { mtimeMs } = await file.stat();
      return { holder: parseHolder(await file.readFile('utf8')), mtimeMs };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** This process as a holder; `now` in epoch milliseconds. */
export function describeThisProcess(command: string, now: number): LockHolder {
  return { ...thisProcess(), command, startedAt: new Date(now).toISOString(), nonce: randomUUID() };
}

/** Undefined for invalid content. */
export function parseHolder(text: string): LockHolder | undefined {
  const value = parseJson(text);
  return isHolder(value) ? value : undefined;
}

const TEXTS = ['host', 'command', 'startedAt', 'bootId', 'processStart', 'pidNamespace', 'nonce'] as const;

function isHolder(value: unknown): value is LockHolder {
  const fields = fieldsOf(value);
  const { pid } = fields;
  return (
    Number.isSafeInteger(pid) && Number(pid) > 0 && TEXTS.every((name) => typeof fields[name] === 'string')
  );
}
