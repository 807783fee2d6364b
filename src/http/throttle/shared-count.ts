/**
 * A count of permits that all runs of one machine share: one file per window, with one byte per taken permit. Appending is atomic,
 * so no lock is needed. Only the length of the file counts, so its content cannot be damaged (docs/adr/0009). If the file cannot
 * be written, the run counts only its own permits.
 */
import { appendFileSync, closeSync, constants, lstatSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderSync } from '../../files/disk.js';
import { errnoOf } from '../../model/errors.js';
import { ProcessCount } from './meter.js';
import type { Budget, WindowCount } from './meter.js';

export interface SharedCountOptions {
  readonly folder: string;
  /** Name of the bucket. */
  readonly name: string;
  readonly warn: (message: string) => void;
}

/** Follows no link and does not wait for the reader of a pipe. Windows has no such flags; there they are undefined and count as 0. */
const APPEND =
  constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class SharedCount implements WindowCount {
  readonly #options: SharedCountOptions;
  /**
   * The folder of the bucket and the one around it. The state folder may be a symbolic link of the user. A link below it is not
   * followed, because it may lead to foreign files.
   */
  readonly #folders: readonly [around: string, own: string];
  /** The count of this process. It decides alone if the folder cannot be used. */
  readonly #ofProcess = new ProcessCount();
  #isAlone = false;
  #window = Number.NaN;

  constructor(options: SharedCountOptions) {
    this.#options = options;
    const around = join(options.folder, 'budgets');
    this.#folders = [around, join(around, encodeURIComponent(options.name))];
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

  /** The file keeps its size: the bytes of several runs cannot be distinguished. */
  giveBack(window: number, weight: number): void {
    if (this.#isAlone) this.#ofProcess.giveBack(window, weight);
  }

  #path(window: number): string {
    return join(this.#folders[1], `${window}.permits`);
  }

  #sizeOf(window: number): number {
    return (
      this.#shared(() => {
        this.#checkFolders();
        const facts = lstatSync(this.#path(window), { throwIfNoEntry: false });
        if (facts?.isFile() === false)
          throw Object.assign(new Error('not a file'), { code: 'not a regular file' });
        return facts?.size;
      }) ?? 0
    );
  }

  /** Throws if a folder is a link or another file. It may be missing. */
  #checkFolders(): void {
    for (const path of this.#folders) {
      if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false)
        throw Object.assign(new Error('not a folder'), { code: 'not a folder' });
    }
  }

  #append(window: number, weight: number): void {
    this.#shared(() => {
      this.#begin(window);
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
      this.#options.warn(
        `the shared budget in ${this.#folders[1]} cannot be used (${errnoOf(error)}): permits of other runs on this machine are not counted`,
      );
      return undefined;
    }
  }

  /** The first permit of a window removes the files of windows before the previous one. A folder or link with such a name stays. */
  #begin(window: number): void {
    if (window === this.#window) return;
    this.#window = window;
    makeFolderSync(this.#options.folder);
    for (const path of this.#folders) {
      makeFolderSync(path);
      this.#checkFolders();
    }
    for (const entry of readdirSync(this.#folders[1], { withFileTypes: true })) {
      const { name } = entry;
      const isOld = entry.isFile() && /^\d+\.permits$/.test(name) && Number.parseInt(name, 10) < window - 1;
      if (isOld) rmSync(join(this.#folders[1], name), { force: true });
    }
  }
}
