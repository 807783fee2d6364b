import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readFile, readlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { errnoOf } from '../model/errors.js';

/** Who holds a lock, as its file tells it. Fields that a platform does not know are empty. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  readonly command: string;
  /** ISO 8601, UTC, by the holder's clock. */
  readonly startedAt: string;
  /** /proc/sys/kernel/random/boot_id: new with every boot of the machine. */
  readonly bootId: string;
  /** Field 22 of /proc/<pid>/stat, clock ticks since boot: tells a process from a later one with its pid. */
  readonly processStart: string;
  /** /proc/self/ns/pid: a pid says nothing outside its namespace (containers may share a host name). */
  readonly pidNamespace: string;
  /** New for every lock. */
  readonly nonce: string;
  /** How often the holder renews its file; absent in files of versions that renew none. */
  readonly heartbeatMs?: number;
}

/** A lock file or a claim as it lies there. */
export interface HolderFile {
  /** Undefined for a torn text, and for anything that is not a file. */
  readonly holder: LockHolder | undefined;
  /** By the clock of the file system. */
  readonly mtimeMs: number;
}

/** Undefined when there is none. Waits for no pipe, follows no link. */
export async function readHolderFile(path: string): Promise<HolderFile | undefined> {
  try {
    const there = await lstat(path);
    if (!there.isFile()) return { holder: undefined, mtimeMs: there.mtimeMs };
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      // Of the open file: NFS answers lstat(2) from a cache, and asks its server when a file is opened.
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
  const [bootId, own, pidNamespace] = await Promise.all([
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
    processStart: own?.start ?? '',
    pidNamespace,
    nonce: randomUUID(),
  };
}

/** Undefined for a torn text. */
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
 * - `gone`: provably not running any more (other boot, no such pid, or the pid is another process now).
 * - `here`: running on this machine.
 * - `elsewhere`: on another host or in another container, which nothing here can look into.
 */
export type HolderState = 'gone' | 'here' | 'elsewhere';

/** What became of `holder`, as far as process `me` can prove it. */
export async function holderState(holder: LockHolder, me: LockHolder): Promise<HolderState> {
  if (holder.host !== me.host) return 'elsewhere';
  if (differ(holder.bootId, me.bootId)) return 'gone';
  if (differ(holder.pidNamespace, me.pidNamespace)) return 'elsewhere';
  if (!isRunning(holder.pid)) return 'gone';
  const found = await processOf(holder.pid);
  // It runs, and nothing more is known: no /proc, or one that hides other users.
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
    // EPERM: it runs, as another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function unknown(): string {
  return '';
}

async function processOf(pid: number): Promise<{ start: string; isZombie: boolean } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 2 is the program's name in brackets and may hold blanks and brackets; field 3, the state, follows it.
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
