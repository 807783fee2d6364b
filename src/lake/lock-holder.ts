/** The content of lock files: the process that holds a lock, and whether that process still runs. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readFile, readlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { errnoOf } from '../model/errors.js';

/** The holder of a lock, as written in the lock file. Fields that a platform does not provide are empty. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  readonly command: string;
  /** ISO 8601, UTC, by the holder's clock. */
  readonly startedAt: string;
  /** /proc/sys/kernel/random/boot_id: changes with every boot. */
  readonly bootId: string;
  /** Field 22 of /proc/<pid>/stat, clock ticks since boot: differs for a later process with the same pid. */
  readonly processStart: string;
  /** /proc/self/ns/pid: a pid is valid only in its namespace, and containers may have the same host name. */
  readonly pidNamespace: string;
  /** Unique for every lock. */
  readonly nonce: string;
  /** Interval of the renewals of the file; undefined in files of versions without renewal. */
  readonly heartbeatMs?: number;
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
export async function describeThisProcess(command: string, now: number): Promise<LockHolder> {
  const [bootId, self, pidNamespace] = await Promise.all([
    readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(unknown),
    processOf(process.pid),
    readlink('/proc/self/ns/pid').catch(unknown),
  ]);
  return {
    pid: process.pid,
    host: hostname(),
    command,
    startedAt: new Date(now).toISOString(),
    bootId: bootId.trim(),
    processStart: self?.start ?? '',
    pidNamespace,
    nonce: randomUUID(),
  };
}

/** Undefined for invalid content. */
export function parseHolder(text: string): LockHolder | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isHolder(value) ? value : undefined;
}

/**
 * - `gone`: the process has ended (other boot, unknown pid, or the pid belongs to another process).
 * - `here`: the process runs on this machine.
 * - `elsewhere`: the process was started on another host or in another container. It is not visible here whether it still runs.
 */
export type HolderState = 'gone' | 'here' | 'elsewhere';

/** The state of `holder`, as far as the process `me` can determine it. */
export async function holderState(holder: LockHolder, me: LockHolder): Promise<HolderState> {
  if (holder.host !== me.host) return 'elsewhere';
  if (differ(holder.bootId, me.bootId)) return 'gone';
  if (differ(holder.pidNamespace, me.pidNamespace)) return 'elsewhere';
  if (!isRunning(holder.pid)) return 'gone';
  const found = await processOf(holder.pid);
  // The process runs, but /proc is missing or hides processes of other users.
  if (found === undefined) return 'here';
  return found.isZombie || differ(found.start, holder.processStart) ? 'gone' : 'here';
}

function differ(one: string, other: string): boolean {
  return one !== '' && other !== '' && one !== other;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process runs as another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function unknown(): string {
  return '';
}

async function processOf(pid: number): Promise<{ start: string; isZombie: boolean } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 2, the program name in parentheses, may contain blanks and parentheses; field 3 is the state (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const start = fields[19];
  return start === undefined ? undefined : { start, isZombie: fields[0] === 'Z' || fields[0] === 'X' };
}

const TEXTS = ['host', 'command', 'startedAt', 'bootId', 'processStart', 'pidNamespace', 'nonce'] as const;

function isHolder(value: unknown): value is LockHolder {
  if (typeof value !== 'object' || value === null) return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  const pid = fields.get('pid');
  if (!Number.isSafeInteger(pid) || Number(pid) <= 0) return false;
  const heartbeatMs = fields.get('heartbeatMs');
  if (heartbeatMs !== undefined && typeof heartbeatMs !== 'number') return false;
  return TEXTS.every((name) => typeof fields.get(name) === 'string');
}
