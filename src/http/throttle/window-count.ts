/** Counts of the permits that were used in a window: by this process, or by all runs of this machine. */
import { appendFileSync, closeSync, constants, lstatSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderSync } from '../../files/disk.js';
import { errnoOf } from '../../model/errors.js';

export interface Budget {
  readonly permits: number;
  readonly windowMs: number;
}

/** The permits that were used in a window, by this process, by all processes of this machine, or by an egress group. */
export interface WindowCount {
  used(window: number): number;
  /**
   * Takes `weight` permits and returns 0 if the window then has at most those of the budget. Otherwise returns the milliseconds
   * before the next attempt can succeed; Infinity: not in this window. `elapsedMs`: since the window began.
   */
  take(window: number, weight: number, budget: Budget, elapsedMs: number): number;
  /** Whether the permits for such a request were taken for this process, and wait for it. */
  holds?(window: number, weight: number): boolean;
  /** Whether another program is being asked; `onChange` tells of its answer. */
  readonly isAsking?: boolean;
  onChange?(listener: () => void): void;
  /** Wall clock minus monotonic clock of this machine, by a clock that all users of the count share. */
  readonly offsetMs?: number | undefined;
  raise(window: number, used: number): void;
  giveBack(window: number, weight: number): void;
}

export class ProcessCount implements WindowCount {
  #window = Number.NaN;
  #used = 0;

  used(window: number): number {
    this.#enter(window);
    return this.#used;
  }

  take(window: number, weight: number, { permits }: Budget): number {
    this.#enter(window);
    if (this.#used + weight > permits) return Infinity;
    this.#used += weight;
    return 0;
  }

  raise(window: number, used: number): void {
    this.#enter(window);
    this.#used = Math.max(this.#used, used);
  }

  giveBack(window: number, weight: number): void {
    if (window === this.#window) this.#used -= weight;
  }

  #enter(window: number): void {
    if (window === this.#window) return;
    this.#window = window;
    this.#used = 0;
  }
}

export interface SharedCountOptions {
  readonly folder: string;
  readonly name: string;
  readonly warn: (message: string) => void;
}

/** Follows no link and does not wait for the reader of a pipe. Windows has no such flags; there they are undefined and count as 0. */
const APPEND =
  constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * A count that all runs of one machine share: one file per window, with one byte per taken permit. Appending is atomic, so no lock is
 * needed. Only the length of the file counts, so damaged content has no effect (docs/adr/0009). If the file cannot be written, the run
 * counts only its own permits.
 */
export class SharedCount implements WindowCount {
  readonly #folder: string;
  /** The count of this process. It decides alone if the folder cannot be used. */
  readonly #ofProcess = new ProcessCount();
  #isAlone = false;
  #preparedWindow = Number.NaN;

  constructor(private readonly options: SharedCountOptions) {
    this.#folder = join(options.folder, 'budgets', encodeURIComponent(options.name));
  }

  used(window: number): number {
    return Math.max(this.#ofProcess.used(window), this.#sizeOf(window));
  }

  take(window: number, weight: number, budget: Budget): number {
    if (this.#sizeOf(window) + weight > budget.permits) return Infinity;
    if (this.#ofProcess.take(window, weight, budget) > 0) return Infinity;
    this.#append(window, weight);
    // If another run took the last permits at the same time, this request waits. Its permits stay counted until the window ends.
    return this.#sizeOf(window) <= budget.permits ? 0 : Infinity;
  }

  raise(window: number, used: number): void {
    this.#ofProcess.raise(window, used);
    const missing = used - this.#sizeOf(window);
    if (missing > 0) this.#append(window, missing);
  }

  /** Only a process that counts alone gives permits back. Else they stay counted until the window ends: the file does not tell which run took which bytes. */
  giveBack(window: number, weight: number): void {
    if (this.#isAlone) this.#ofProcess.giveBack(window, weight);
  }

  #path(window: number): string {
    return join(this.#folder, `${window}.permits`);
  }

  #sizeOf(window: number): number {
    return (
      this.#shared(() => {
        const facts = lstatSync(this.#path(window), { throwIfNoEntry: false });
        if (facts?.isFile() === false)
          throw Object.assign(new Error('no file'), { code: 'not a regular file' });
        return facts?.size;
      }) ?? 0
    );
  }

  #append(window: number, weight: number): void {
    this.#shared(() => {
      this.#prepare(window);
      const file = openSync(this.#path(window), APPEND);
      try {
        appendFileSync(file, '.'.repeat(weight));
      } finally {
        closeSync(file);
      }
    });
  }

  /** Undefined if the folder cannot be used; from then on this process counts alone. */
  #shared<T>(act: () => T): T | undefined {
    if (this.#isAlone) return undefined;
    try {
      return act();
    } catch (error) {
      this.#isAlone = true;
      this.options.warn(
        `the shared budget in ${this.#folder} cannot be used (${errnoOf(error)}): permits of other runs on this machine are not counted`,
      );
      return undefined;
    }
  }

  /** Before the first permit of a window: makes the folder, and removes the files of windows before the previous one. */
  #prepare(window: number): void {
    if (window === this.#preparedWindow) return;
    this.#preparedWindow = window;
    makeFolderSync(this.#folder);
    for (const entry of readdirSync(this.#folder, { withFileTypes: true })) {
      const { name } = entry;
      const isOld = entry.isFile() && /^\d+\.permits$/.test(name) && Number.parseInt(name, 10) < window - 1;
      if (isOld) rmSync(join(this.#folder, name), { force: true });
    }
  }
}
