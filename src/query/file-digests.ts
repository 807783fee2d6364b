/** Compares files of the lake with the digests of their last commits, before their rows leave the lake. */
import { fileFacts } from '../lake/publish.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { lakeFlag, shownPath } from '../text/printable.js';
import type { LakeFile } from './lake-tables.js';

/** The commands that fetch the objects of damaged or missing files again. `root`: the lake. */
export function fetchAgainText(root: string, what = 'its objects'): string {
  return `cryptodl verify --fix${lakeFlag(root)}, then cryptodl repair${lakeFlag(root)}, fetches ${what} again`;
}

/** The rows of a file of the lake must not be read. */
export class UnreadableFile extends CryptodlError {
  constructor(text: string) {
    super('disk', text);
  }
}

/** A file of the lake is missing, or has other content than its manifest says. */
export class DamagedFile extends UnreadableFile {
  readonly file: LakeFile;

  constructor(file: LakeFile) {
    super(`${shownPath(file.path)} does not have the content that was committed`);
    this.file = file;
  }
}

/** A file that is not to be read. */
export interface FileFault<File extends LakeFile> {
  readonly file: File;
  /** Why it cannot be read; undefined for a file that is missing or has other content. */
  readonly reason: string | undefined;
}

/** Number of files that `faultsOf` reads at the same time. */
const AT_ONCE = 16;

/** Errors of one file. Others, for example too many open files, concern the run. */
const FILE_ERRORS: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EIO']);

/** The checks of one run. Each file is read once. */
export class FileDigests {
  readonly #signal: AbortSignal;
  readonly #checked = new Map<string, Promise<boolean>>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Rejects with `UnreadableFile` if there is a fault in one of the files, and when interrupted. */
  async refuseDamaged(files: readonly LakeFile[]): Promise<void> {
    const [fault] = await this.faultsOf(files);
    if (fault === undefined) return;
    if (fault.reason === undefined) throw new DamagedFile(fault.file);
    throw new UnreadableFile(`${shownPath(fault.file.path)} cannot be read: ${fault.reason}`);
  }

  /** The first fault of these files, and the next step. `root`: the lake. Undefined without one. Rejects when interrupted. */
  async faultText(root: string, files: readonly LakeFile[]): Promise<string | undefined> {
    try {
      await this.refuseDamaged(files);
      return undefined;
    } catch (error) {
      if (error instanceof DamagedFile) return `${error.message}; ${fetchAgainText(root)}`;
      if (error instanceof UnreadableFile) return error.message;
      throw error;
    }
  }

  /** All files that are missing, have other content or cannot be read, in the given order. Rejects when interrupted. */
  async faultsOf<File extends LakeFile>(files: readonly File[]): Promise<FileFault<File>[]> {
    const faults: FileFault<File>[] = [];
    for (let at = 0; at < files.length; at += AT_ONCE)
      faults.push(
        ...(await Promise.all(files.slice(at, at + AT_ONCE).map((file) => this.#faultOf(file)))).flat(),
      );
    return faults;
  }

  async #faultOf<File extends LakeFile>(file: File): Promise<FileFault<File>[]> {
    try {
      return (await this.#isSound(file)) ? [] : [{ file, reason: undefined }];
    } catch (error) {
      // A symbolic link, or an entry that is not a file.
      if (error instanceof CryptodlError && error.code === 'disk') return [{ file, reason: error.message }];
      const code = errnoOf(error);
      if (!FILE_ERRORS.has(code)) throw error;
      return [{ file, reason: code === 'ENOENT' ? undefined : reasonOf(code) }];
    }
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
