/**
 * The process that holds a lock, the files that describe it, and its lease, for holders on other hosts and in other containers. The holder renews
 * it by writing to the lock file. The age of a renewal is the difference between two times of the same file system, so the clocks of the hosts do not
 * matter.
 */
import { HOUR_MS } from '../model/units.js';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, lstat, rm, stat, writeFile } from 'node:fs/promises';
import type { Clock, Timer } from '../model/clock.js';
import { CryptodlError, unlessMissing } from '../model/errors.js';
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
function parseHolder(text: string): LockHolder | undefined {
  const fields = fieldsOf(parseJson(text));
  const isProcess = Number.isSafeInteger(fields['pid']) && Number(fields['pid']) > 0;
  const isHolder = isProcess && TEXTS.every((name) => typeof fields[name] === 'string');
  return isHolder ? (fields as unknown as LockHolder) : undefined;
}

/** A lock of another host or container expires this long after its last renewal. */
export const LEASE_MS = 60_000;
const MOST_AHEAD_MS = HOUR_MS;

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

const HEARTBEAT_MS = 15_000;
/** If the last renewal is older than this, a commit renews the lock first, because the process may have been suspended. */
const CONFIRM_AFTER_MS = 2 * HEARTBEAT_MS;

interface LeaseOptions {
  readonly path: string;
  readonly nonce: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'timer'>;
  /** Called once, with a `locked` error, when the lock file is gone, damaged or of another holder. */
  readonly onLost: (error: CryptodlError) => void;
}

export class Lease {
  readonly #timer: Timer;
  #renewedAt: { readonly wall: number; readonly monotonic: number };
  #lost: CryptodlError | undefined;

  /** Begins the lease of a lock file that was just written. */
  constructor(private readonly options: LeaseOptions) {
    this.#renewedAt = this.#time();
    this.#timer = options.clock.timer(HEARTBEAT_MS, () => void this.#beat(), { keepsAlive: false });
  }

  /** Rejects with `locked` if the lock file is gone, damaged or of another holder, and with the error of the disk if it cannot be renewed. */
  async confirm(): Promise<void> {
    // Both clocks are used: the monotonic clock stops while the machine sleeps, and the wall clock may be changed.
    const { wall, monotonic } = this.#time();
    const ages = [wall - this.#renewedAt.wall, monotonic - this.#renewedAt.monotonic];
    if (ages.some((age) => age < 0 || age > CONFIRM_AFTER_MS)) await this.#renew();
    if (this.#lost !== undefined) throw this.#lost;
  }

  end(): void {
    this.#timer.cancel();
  }

  async #beat(): Promise<void> {
    // A failed renewal is repeated at the next heartbeat, and by `confirm` when the last renewal is too old.
    await this.#renew().catch(() => undefined);
    if (this.#lost === undefined) this.#timer.restart();
  }

  async #renew(): Promise<void> {
    if (this.#lost !== undefined) return;
    const time = this.#time();
    const holder = await touch(this.options.path, this.options.nonce);
    if (holder === undefined) this.#renewedAt = time;
    else this.#lose(holder);
  }

  #lose(holder: LockHolder | 'none'): void {
    // Two renewals may run at the same time.
    if (this.#lost !== undefined) return;
    this.end();
    const { path, onLost } = this.options;
    const why =
      holder === 'none'
        ? `${path} is gone or damaged`
        : `pid ${holder.pid} on ${holder.host} has taken it over (${holder.command})`;
    this.#lost = new CryptodlError('locked', `this run has lost the lock of its lake: ${why}`, {
      hint: 'committed files are kept; try again when no other run writes to this lake',
    });
    onLost(this.#lost);
  }

  #time(): { wall: number; monotonic: number } {
    const { clock } = this.options;
    return { wall: clock.now(), monotonic: clock.monotonic() };
  }
}

/** Renews the lock file if its holder has this `nonce`; else resolves with its holder, `none` for a missing or damaged file. */
async function touch(path: string, nonce: string): Promise<LockHolder | 'none' | undefined> {
  const file = await unlessMissing(open(path, constants.O_RDWR | constants.O_NOFOLLOW));
  if (file === undefined) return 'none';
  try {
    const text = await file.readFile('utf8');
    const holder = parseHolder(text);
    if (holder?.nonce !== nonce) return holder ?? 'none';
    // Rewriting one byte sets mtime by the clock of the file system; utimes(2) would set it by the clock of this host. If
    // another run has just replaced the lock file, this changes only the old file.
    await file.write(text.slice(0, 1), 0);
    return undefined;
  } finally {
    await file.close();
  }
}
