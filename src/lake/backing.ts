/**
 * Lakes whose files lie elsewhere, for example in a bucket. The root of such a lake is a local mirror: an ordinary lake with stubs, which
 * are empty files of the right size, in place of the files that were not read yet. The functions of this file do nothing for other lakes.
 */
import { sep } from 'node:path';
import type { RequestCounts } from '../http/request-counts.js';

/** The other side of a mirror. All paths are absolute paths in the mirror. */
export interface Backing {
  readonly root: string;
  /** Makes the files of a series known. */
  openSeries(seriesFolder: string): Promise<void>;
  /** Forgets what is known about a series, because another writer has changed it. The next call opens it again. */
  reopenSeries(seriesFolder: string): Promise<void>;
  /** Makes all files below these folders known. */
  openFolders(folders: readonly string[]): Promise<void>;
  /** The same for folders of the exchange, of which the command may need a part only. */
  openLake(folders: readonly string[]): Promise<void>;
  openFile(path: string): Promise<void>;
  /** Replaces a stub by the bytes of its file. Rejects with `lake-conflict` if another writer has changed the file. */
  bringIn(path: string): Promise<void>;
  /** The time since the last change of a file by another command in milliseconds, by the clock of the other side. */
  ageMs(path: string): number;
  /** Replaces the bytes of the files in these folders by stubs, except for files that differ from the other side. */
  release(folders: readonly string[]): Promise<void>;
  /** Calls `act` while nothing else changes the manifest of the series. */
  exclusively<T>(seriesFolder: string, act: () => Promise<T>): Promise<T>;
  /** Rejects with the error of the other side. */
  tryOut(): Promise<BackingTrial>;
  /** Publishes the changes in a folder outside of the series now, also those that no manifest names. */
  publishFolder(folder: string): Promise<void>;
  /** Begins to publish the present state of a series, together with later changes that come before the turn of the series. */
  publishSeries(seriesFolder: string): void;
  /** Resolves when the changes so far are published; with true if the manifest now has lines of another writer too. */
  published(seriesFolder: string): Promise<boolean>;
}

/** The other side as a small file finds it that is put, put again and removed. */
export interface BackingTrial {
  /** The time of the first put. */
  readonly putMs: number;
  /** Whether a put that must not replace a file replaces none, with no time between the comparison and the put. */
  readonly isAtomic: boolean;
}

/** Files that are brought in at the same time. */
const AT_ONCE = 16;

/** By root. The table belongs to the process: files are read and written far from the place that opens a lake. */
const backings = new Map<string, Backing>();

/** The requests to the other sides, by root. */
const requestsOf = new Map<string, RequestCounts>();

/** Connects a mirror until the returned function is called. `requests`: those to the other side. */
export function connectBacking(backing: Backing, requests?: RequestCounts): () => void {
  const { root } = backing;
  backings.set(root, backing);
  if (requests !== undefined) requestsOf.set(root, requests);
  return () => {
    backings.delete(root);
    requestsOf.delete(root);
  };
}

function backingOf(path: string): Backing | undefined {
  for (const [root, backing] of backings)
    if (path === root || path.startsWith(`${root}${sep}`)) return backing;
  return undefined;
}

/** Call before the manifest or the folder of a series is read. */
export async function openBackedSeries(seriesFolder: string): Promise<void> {
  await backingOf(seriesFolder)?.openSeries(seriesFolder);
}

/** Call after a `lake-conflict`. Resolves with false for a lake without another side. */
export async function reopenBackedSeries(seriesFolder: string): Promise<boolean> {
  const backing = backingOf(seriesFolder);
  await backing?.reopenSeries(seriesFolder);
  return backing !== undefined;
}

/** Call before folders of a lake are listed. */
export async function openBackedFolders(...folders: readonly string[]): Promise<void> {
  await backingOf(folders[0] ?? '')?.openFolders(folders);
}

/** Call before the folders of the exchange are listed. */
export async function openBackedLake(...folders: readonly string[]): Promise<void> {
  await backingOf(folders[0] ?? '')?.openLake(folders);
}

/** Call before the existence of a file outside of the series is checked. */
export async function openBackedFile(path: string): Promise<void> {
  await backingOf(path)?.openFile(path);
}

/** Call before the bytes of a file are read. Rejects like `published`, if another writer has changed the file since it was made known. */
export async function bringIn(given: string | readonly string[]): Promise<void> {
  const paths = typeof given === 'string' ? [given] : given;
  const backing = backingOf(paths[0] ?? '');
  if (backing === undefined) return;
  for (let at = 0; at < paths.length; at += AT_ONCE)
    await Promise.all(paths.slice(at, at + AT_ONCE).map((path) => backing.bringIn(path)));
}

/** Call when the bytes of the files of a series are no longer needed. */
export async function releaseBacked(...folders: readonly string[]): Promise<void> {
  await backingOf(folders[0] ?? '')?.release(folders);
}

/** Changes a manifest by `act`, and begins to publish its series. */
export async function changeBackedManifest<T>(seriesFolder: string, act: () => Promise<T>): Promise<T> {
  const backing = backingOf(seriesFolder);
  if (backing === undefined) return act();
  const result = await backing.exclusively(seriesFolder, act);
  backing.publishSeries(seriesFolder);
  return result;
}

/**
 * Call before the changes of a series are told. Resolves with true if the manifest now has lines of another writer too. Rejects with
 * `lake-conflict` if another writer has changed a file of the series, and with the error of the other side.
 */
export async function publishedBackedSeries(seriesFolder: string): Promise<boolean> {
  return (await backingOf(seriesFolder)?.published(seriesFolder)) ?? false;
}

/** Publishes the changes of a series now, with or without a change of its manifest. Rejects like `publishedBackedSeries`. */
export async function publishBackedSeries(seriesFolder: string): Promise<void> {
  const backing = backingOf(seriesFolder);
  backing?.publishSeries(seriesFolder);
  await backing?.published(seriesFolder);
}

/** The same for a folder outside of the series. Its files replace those of other writers. */
export async function publishBackedFolder(folder: string): Promise<void> {
  await backingOf(folder)?.publishFolder(folder);
}

/** Infinite for a lake without another side: its lock keeps other commands away. */
export function backedAgeMs(path: string): number {
  return backingOf(path)?.ageMs(path) ?? Number.POSITIVE_INFINITY;
}

/** The requests to the other side; undefined for a lake without one. */
export function backedRequests(root: string): RequestCounts | undefined {
  return requestsOf.get(root);
}

/** Undefined for a lake without another side. */
export async function tryBackingOut(root: string): Promise<BackingTrial | undefined> {
  return backingOf(root)?.tryOut();
}
