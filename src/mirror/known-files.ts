/** The files of a bucket that a mirror knows, by folder and name. */
import { posix } from 'node:path';

export interface KnownFile {
  readonly etag: string;
  /** The size in the bucket. */
  readonly bytes: number;
  /** The stamp of the local file. A file with another stamp was changed here. */
  readonly stamp: string;
  readonly isStub: boolean;
  /** The time since its last change in milliseconds, when the bucket was asked; undefined for a file that was put by this command. */
  readonly ageMs?: number | undefined;
}

export class KnownFiles {
  readonly #folders = new Map<string, Map<string, KnownFile>>();

  get(key: string): KnownFile | undefined {
    return this.#folders.get(posix.dirname(key))?.get(posix.basename(key));
  }

  set(key: string, file: KnownFile): void {
    const folder = posix.dirname(key);
    const files = this.#folders.get(folder) ?? new Map<string, KnownFile>();
    this.#folders.set(folder, files);
    files.set(posix.basename(key), file);
  }

  delete(key: string): void {
    this.#folders.get(posix.dirname(key))?.delete(posix.basename(key));
  }

  namesIn(folder: string): string[] {
    return [...(this.#folders.get(folder)?.keys() ?? [])];
  }

  /** The folders with files at or below this one. */
  foldersBelow(folder: string): string[] {
    return [...this.#folders.keys()].filter((each) => each === folder || each.startsWith(`${folder}/`));
  }
}
