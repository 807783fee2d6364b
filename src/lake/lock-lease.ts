/**
 * How long a lock counts without its process being seen. The holder renews it by writing to its file; the age of a renewal is
 * the difference of two stamps of one file system, so that the clocks of the hosts do not matter.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rm, stat, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../model/clock.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { parseHolder, type HolderFile, type LockHolder } from './lock-holder.js';

export const HEARTBEAT_MS = 15_000;
/** A lock of another host or container that was not renewed for so long is free. */
export const LEASE_MS = 60_000;
const MOST_AHEAD_MS = 3_600_000;
/** A renewal of this age is confirmed on the disk before a commit: the process may have been suspended. */
const CONFIRM_AFTER_MS = 2 * HEARTBEAT_MS;

export interface LeaseOptions {
  /** Of the lock file. */
  readonly path: string;
  readonly nonce: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'timer'>;
  /** Called once, with `locked`, when the lock has another holder. */
  readonly onLost: (error: CryptodlError) => void;
}

export class Lease {
  readonly #options: LeaseOptions;
  readonly #timer: Timer;
  #renewedAt: { readonly wall: number; readonly monotonic: number };
  #lost: CryptodlError | undefined;

  /** Of a lock file that was written just now. */
  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#renewedAt = this.#time();
    this.#timer = options.clock.timer(HEARTBEAT_MS, () => void this.#beat(), { keepsAlive: false });
  }

  /** Rejects with `locked` when the lock has another holder, and with the error of a disk that cannot tell. */
  async confirm(): Promise<void> {
    // The monotonic clock stands still while the machine sleeps, and the wall clock may be set.
    const { wall, monotonic } = this.#time();
    const ages = [wall - this.#renewedAt.wall, monotonic - this.#renewedAt.monotonic];
    if (ages.some((age) => age < 0 || age > CONFIRM_AFTER_MS)) await this.#renew();
    if (this.#lost !== undefined) throw this.#lost;
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  end(): void {
    this.#timer.cancel();
  }

  async #beat(): Promise<void> {
    // What the disk refuses now it may take at the next heartbeat; until then `confirm` tells of it.
    await this.#renew().catch(() => undefined);
    if (this.#lost === undefined) this.#timer.restart();
  }

  async #renew(): Promise<void> {
    if (this.#lost !== undefined) return;
    const time = this.#time();
    const holder = await touch(this.#options.path, this.#options.nonce);
    if (holder === undefined) this.#renewedAt = time;
    else this.#lose(holder);
  }

  #lose(holder: LockHolder | 'none'): void {
    // Two renewals may be under way.
    if (this.#lost !== undefined) return;
    this.end();
    const { path, onLost } = this.#options;
    const why =
      holder === 'none'
        ? `${path} is gone or damaged`
        : `pid ${holder.pid} on ${holder.host} took it over (${holder.command})`;
    this.#lost = new CryptodlError('locked', `this run has lost the lock of its lake: ${why}`, {
      hint: 'what is committed stays; run the same command again when no other run writes this lake',
    });
    onLost(this.#lost);
  }

  #time(): { wall: number; monotonic: number } {
    const { clock } = this.#options;
    return { wall: clock.now(), monotonic: clock.monotonic() };
  }
}

/** Renews the lock file of `nonce`; resolves with its holder, or `none`, if that is not `nonce`. */
async function touch(path: string, nonce: string): Promise<LockHolder | 'none' | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 'none';
    throw error;
  }
  try {
    const text = await file.readFile('utf8');
    const holder = parseHolder(text);
    if (holder?.nonce !== nonce) return holder ?? 'none';
    // The same byte again, for its stamp: utimes(2) would set that of this host's clock. Should another run have put its
    // file there meanwhile, this writes to the old one.
    await file.write(text.slice(0, 1), 0);
    return undefined;
  } finally {
    await file.close();
  }
}

/** Now, in epoch milliseconds, by the clock of the file system of `directory`; undefined where nothing can be written. */
export async function fileSystemNow(directory: string): Promise<number | undefined> {
  // A name of the claims: the next run clears it, if this one is killed here.
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

/** Whether a lock file was not renewed for a whole lease; false for those of versions that renew none. */
export function isExpired({ holder, mtimeMs }: HolderFile, nowMs: number | undefined): boolean {
  if (holder?.heartbeatMs === undefined || nowMs === undefined) return false;
  // Clocks differ by minutes; a stamp that is hours ahead was forged, or its clock was set back since.
  const ageMs = nowMs - mtimeMs;
  return ageMs > LEASE_MS || ageMs < -MOST_AHEAD_MS;
}
