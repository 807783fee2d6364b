/**
 * A budget that all runs of one machine share: a file per window, as long as the permits that were taken. Appending is
 * atomic, so that nobody needs a lock, and a file can hold nothing wrong (docs/adr/0009). What cannot be written costs the
 * sharing, not the run.
 */
import { appendFileSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { errnoOf } from '../errors.js';
import { makeFolderSync } from '../make-folder.js';
import { OwnCount } from './window-count.js';
import type { WindowCount } from './window-count.js';

export interface SharedCountOptions {
  readonly folder: string;
  /** Of the bucket and the place that it is about. */
  readonly name: string;
  readonly warn: (message: string) => void;
}

const OWN_NAME = /^\d+\.permits$/;

export class SharedCount implements WindowCount {
  readonly #options: SharedCountOptions;
  readonly #folder: string;
  /** Alone from the moment when the folder could not be used. */
  readonly #own = new OwnCount();
  #isAlone = false;
  #window = Number.NaN;

  constructor(options: SharedCountOptions) {
    this.#options = options;
    this.#folder = join(options.folder, 'budgets', encodeURIComponent(options.name));
  }

  used(window: number): number {
    return Math.max(this.#own.used(window), this.#sizeOf(window));
  }

  take(window: number, weight: number, permits: number): boolean {
    if (this.#sizeOf(window) + weight > permits) return false;
    if (!this.#own.take(window, weight, permits)) return false;
    this.#append(window, weight);
    // If another run was faster, what both took stays counted until the window ends.
    return this.#sizeOf(window) <= permits;
  }

  raise(window: number, used: number): void {
    this.#own.raise(window, used);
    const missing = used - this.#sizeOf(window);
    if (missing > 0) this.#append(window, missing);
  }

  /** What is in the file stays: nobody can tell whose it was. */
  giveBack(window: number, weight: number): void {
    if (this.#isAlone) this.#own.giveBack(window, weight);
  }

  #path(window: number): string {
    return join(this.#folder, `${window}.permits`);
  }

  #sizeOf(window: number): number {
    return (
      this.#shared(() => {
        const facts = statSync(this.#path(window), { throwIfNoEntry: false });
        // An append to a pipe would wait for a reader.
        if (facts?.isFile() === false)
          throw Object.assign(new Error('not a file'), { code: 'not a regular file' });
        return facts?.size;
      }) ?? 0
    );
  }

  #append(window: number, weight: number): void {
    this.#shared(() => {
      this.#begin(window);
      appendFileSync(this.#path(window), '.'.repeat(weight));
    });
  }

  /** Undefined, and alone from then on, when the folder cannot be used. */
  #shared<T>(act: () => T): T | undefined {
    if (this.#isAlone) return undefined;
    try {
      return act();
    } catch (error) {
      this.#isAlone = true;
      this.#options.warn(
        `the shared budget in ${this.#folder} cannot be used (${errnoOf(error)}): other runs of this machine are not seen`,
      );
      return undefined;
    }
  }

  /** The first permit of a window takes the files of those before away, but nothing through a link. */
  #begin(window: number): void {
    if (window === this.#window) return;
    this.#window = window;
    const { folder } = this.#options;
    makeFolderSync(this.#folder);
    if (realpathSync(this.#folder) !== resolve(realpathSync(folder), relative(folder, this.#folder))) return;
    for (const name of readdirSync(this.#folder)) {
      const isOld = OWN_NAME.test(name) && Number.parseInt(name, 10) < window - 1;
      if (isOld) rmSync(join(this.#folder, name), { force: true });
    }
  }
}
