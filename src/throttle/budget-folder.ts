/**
 * The folder of one budget in the state folder. The state folder may be a symbolic link of the user; a link below it is not
 * followed, because the files on its other side are foreign.
 */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderSync } from '../make-folder.js';

export class BudgetFolder {
  readonly path: string;
  readonly #stateFolder: string;
  readonly #budgets: string;

  constructor(stateFolder: string, name: string) {
    this.#stateFolder = stateFolder;
    this.#budgets = join(stateFolder, 'budgets');
    this.path = join(this.#budgets, encodeURIComponent(name));
  }

  /** Throws when a link, or another thing than a folder, is in its place; it may be missing. */
  check(): void {
    for (const path of [this.#budgets, this.path]) {
      if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false)
        throw Object.assign(new Error('not a folder'), { code: 'not a folder' });
    }
  }

  make(): void {
    makeFolderSync(this.#stateFolder);
    for (const path of [this.#budgets, this.path]) {
      makeFolderSync(path);
      this.check();
    }
  }
}
