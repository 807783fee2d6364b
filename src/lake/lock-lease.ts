/**
 * The lease of a lock, for holders on other hosts and in other containers. The holder renews it by writing to the lock file. The
 * age of a renewal is the difference between two times of the same file system, so the clocks of the hosts do not matter.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Clock, Timer } from '../model/clock.js';
import { CryptodlError, unlessMissing } from '../model/errors.js';
import { parseHolder, type LockHolder } from './lock-holder.js';

const HEARTBEAT_MS = 15_000;
/** If the last renewal is older than this, a commit renews the lock first, because the process may have been suspended. */
const CONFIRM_AFTER_MS = 2 * HEARTBEAT_MS;

export interface LeaseOptions {
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

  /**
   * Rejects with `locked` when the lock file is gone, damaged or of another holder, and with the error of the disk when the file
   * cannot be renewed.
   */
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
