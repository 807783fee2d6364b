/** Compares files of the lake with the digests of their last commits, before their rows leave the lake. */
import { fileFacts } from '../lake/publish.js';
import { CryptodlError } from '../model/errors.js';
import { lakeFlag, shownPath } from '../text/printable.js';
import type { LakeFile } from './lake-tables.js';

/** The commands that fetch the objects of damaged or missing files again. `root`: the lake. */
export function fetchAgainText(root: string): string {
  return `cryptodl verify --fix${lakeFlag(root)}, then cryptodl repair${lakeFlag(root)}, fetches its objects again`;
}

/** A file of the lake has other content than its manifest says. */
export class DamagedFile extends CryptodlError {
  constructor({ path }: LakeFile) {
    super('disk', `${shownPath(path)} does not have the content that was committed`);
  }
}

/** The checks of one run. Each file is read once. */
export class FileDigests {
  readonly #signal: AbortSignal;
  readonly #checked = new Map<string, Promise<boolean>>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Rejects with `DamagedFile` for the first file with other content, when interrupted, and with errors of the disk. */
  async refuseDamaged(files: readonly LakeFile[]): Promise<void> {
    for (const file of files) if (!(await this.#isSound(file))) throw new DamagedFile(file);
  }

  #isSound({ path, sha256 }: LakeFile): Promise<boolean> {
    const name = `${path}\n${sha256}`;
    const known = this.#checked.get(name);
    if (known !== undefined) return known;
    const checked = fileFacts(path, 0, this.#signal).then((facts) => facts.sha256 === sha256);
    this.#checked.set(name, checked);
    return checked;
  }
}
