/**
 * Lakes whose files lie elsewhere, for example in a bucket. The root of such a lake is a local mirror: an ordinary lake with stubs, which
 * are empty files of the right size, in place of the files that were not read yet.
 */
import { sep } from 'node:path';
import { toCryptodlError } from '../model/errors.js';
import type { FollowedRequests } from '../model/observer.js';

/** The other side of a mirror. All paths are absolute paths in the mirror. */
export interface Backing {
  readonly root: string;
  readonly requests: FollowedRequests;
  /** Makes the files of a series known. Call before the manifest or the folder of a series is read. */
  openSeries(seriesFolder: string): Promise<void>;
  /** Forgets what is known about a series, because another writer has changed it. The next call opens it again. */
  reopenSeries(seriesFolder: string): Promise<void>;
  /** How often the manifest of a series has got changes of another writer, or was forgotten: it must be read again after that. */
  timesChanged(seriesFolder: string): number;
  /** Calls `act`. Until it has ended, the files of the series are neither forgotten nor dropped. It must wait for no publication. */
  using<T>(seriesFolder: string, act: () => Promise<T>): Promise<T>;
  /** Makes all files below these folders known. Call before they are listed. Rejects with `disk` for a lost file in one of them. */
  openFolders(folders: readonly string[]): Promise<void>;
  /** The same for folders of the exchange, of which the command may need a part only. */
  openLake(folders: readonly string[]): Promise<void>;
  /** Drops the files of a folder outside of the series, also those that were changed here, and makes those of the other side known again. */
  reopenFolder(folder: string): Promise<void>;
  /** Call before the existence of a file outside of the series is checked. */
  openFile(path: string): Promise<void>;
  /** Replaces stubs by the bytes of their files. Rejects with `lake-conflict` if another writer has changed a file, and like `refuseLost`. */
  bringIn(paths: readonly string[]): Promise<void>;
  /** The time since the last change of a file by another command in milliseconds, by the clock of the other side. */
  ageMs(path: string): number;
  /** Replaces the bytes of the files in these folders by stubs, except for files that differ from the other side. */
  release(folders: readonly string[]): void;
  /** Changes the manifest of a series by `act`, one call at a time, and begins to publish the series. */
  changeManifest<T>(seriesFolder: string, act: () => Promise<T>): Promise<T>;
  /**
   * Resolves when the changes of a series so far are published. Rejects with `lake-conflict` if another writer has changed a file of the
   * series, and with the error of the other side.
   */
  published(seriesFolder: string): Promise<void>;
  /** Tells that a file has got its name here. */
  wrote(path: string): void;
  /** Call before a file is removed or moved away on purpose. Any other file that is missing here is lost, and the other side keeps it. */
  removes(path: string): void;
  /** Throws `disk` for a lost file: what replaced it would lack its content. */
  refuseLost(path: string): void;
  /** Publishes the changes in a folder outside of the series now. Rejects with `lake-conflict` if another writer has changed one of these files. */
  publishFolder(folder: string): Promise<void>;
  /** Rejects with the error of the other side. */
  tryOut(): Promise<BackingTrial>;
}

/** The other side as a small file finds it that is put, put twice again and removed. */
export interface BackingTrial {
  /** The time of the first put. */
  readonly putMs: number;
  /** Whether a put that must not replace a file, or only another version, replaces none, with no time between the comparison and the put. */
  readonly isAtomic: boolean;
}

/** By root. The table belongs to the process: files are read and written far from the place that opens a lake. */
const backings = new Map<string, Backing>();

/** Connects a mirror until the returned function is called. */
export function connectBacking(backing: Backing): () => void {
  backings.set(backing.root, backing);
  return () => backings.delete(backing.root);
}

/** The other side of the lake at this path or around it; undefined for a lake without one. */
export function backingOf(path: string): Backing | undefined {
  for (const [root, backing] of backings)
    if (path === root || path.startsWith(`${root}${sep}`)) return backing;
  return undefined;
}

/** Call before the bytes of files of one lake are read. Does nothing for a lake without another side. */
export async function bringIn(...paths: readonly string[]): Promise<void> {
  await backingOf(paths[0] ?? '')?.bringIn(paths);
}

export function changeManifest<T>(seriesFolder: string, act: () => Promise<T>): Promise<T> {
  const backing = backingOf(seriesFolder);
  return backing === undefined ? act() : backing.changeManifest(seriesFolder, act);
}

/** Attempts at what other writers change meanwhile. Each failed attempt is progress of another writer. */
const MOST_ATTEMPTS = 20;

/** Calls `act` again after `reopen` when another writer of a lake in a bucket has changed what it needs. */
export async function withoutConflict<T>(
  act: () => Promise<T>,
  reopen: () => Promise<unknown> | undefined,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await act();
    } catch (error) {
      if (toCryptodlError(error).code !== 'lake-conflict' || attempt === MOST_ATTEMPTS) throw error;
      await reopen();
    }
  }
}
