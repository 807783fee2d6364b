/** Publishes the changes of a mirror into its bucket. Each put names the version that it replaces, so no change of another writer is lost. */
import { randomUUID } from 'node:crypto';
import { copyFile, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { FOLDERS } from '../lake/layout.js';
import { CryptodlError } from '../model/errors.js';
import type { LakeBucket } from '../s3/bucket.js';
import { changedElsewhere } from '../s3/conditions.js';
import type { PutCondition } from '../s3/conditions.js';
import { inParallel } from './in-parallel.js';
import { changesIn, foldersBelow } from './changes.js';
import type { KnownFile, KnownFiles } from './known-files.js';
import { joinManifests, replacedFiles, zipFolders } from './manifest-text.js';
import { stampAt, writeStub } from './stub.js';

/** Files of a series that are put or removed at the same time. */
const AT_ONCE = 8;
/** Attempts to put a manifest. Each failed attempt is progress of another writer. */
const MOST_PUTS = 20;

/** A series to publish. Folders and manifest are keys. */
export interface PublishedSeries {
  readonly folder: string;
  readonly manifest: string;
  /** Calls `act` while nothing else changes the manifest. */
  readonly exclusively: <T>(act: () => Promise<T>) => Promise<T>;
  /** Called with the key of a file that another writer has changed. */
  readonly onConflict: (key: string) => void;
  /** Called when the manifest has got lines of another writer. */
  readonly onJoined: () => void;
}

/** A series at one moment. Later commits change neither the copy of the manifest nor these files. */
interface Snapshot {
  /** The path of the copy, if there is a manifest. */
  readonly staged: string;
  /** The stamp of the manifest; undefined without one. */
  readonly stamp: string | undefined;
  readonly changed: readonly string[];
  /** Keys of files that the series no longer has. */
  readonly gone: readonly string[];
}

export class Publisher {
  readonly #bucket: LakeBucket;
  readonly #known: KnownFiles;
  readonly #root: string;

  constructor(bucket: LakeBucket, known: KnownFiles, root: string) {
    this.#bucket = bucket;
    this.#known = known;
    this.#root = root;
  }

  /**
   * Puts the new files of a series, then its manifest, then the files that replace others; last, removes the files that the series no longer
   * has. The published files become stubs. Rejects with `lake-conflict` if another writer has changed one of these files, or has rewritten
   * the manifest.
   */
  async publishSeries(series: PublishedSeries): Promise<void> {
    const published = new Set<string>();
    for (let attempt = 1; ; attempt += 1) {
      const snapshot = await series.exclusively(() => this.#snapshot(series));
      for (const key of snapshot.changed) published.add(key);
      try {
        if (await this.#publishSnapshot(series, snapshot, attempt)) break;
        await this.#joinLines(series, [...published, ...snapshot.gone]);
        series.onJoined();
      } finally {
        await rm(snapshot.staged, { force: true });
      }
    }
    for (const key of published) await this.toStub(key);
  }

  /** Resolves with false if another writer has changed the manifest; at the last attempt, rejects with `lake-conflict`. */
  async #publishSnapshot(series: PublishedSeries, snapshot: Snapshot, attempt: number): Promise<boolean> {
    const { manifest, folder } = series;
    const { staged, stamp, changed, gone } = snapshot;
    const replaced = await replacedFiles(staged);
    const isReplaced = (key: string): boolean =>
      this.#known.get(key) !== undefined && replaced.has(nameInLines(key, folder));
    // Chosen before the puts, because they make files known. A sidecar, `a.zip.CHECKSUM`, goes with its zip.
    const replacing = new Set(
      changed.filter((key) => isReplaced(key) || isReplaced(key.replace(/\.[^./]*$/, ''))),
    );
    const put = (key: string): Promise<void> =>
      this.#put(key).catch((error: unknown) => {
        if (isConflict(error)) series.onConflict(key);
        throw error;
      });
    await inParallel(
      changed.filter((key) => !replacing.has(key)),
      AT_ONCE,
      put,
    );
    const isChanged = stamp !== undefined && stamp !== this.#known.get(manifest)?.stamp;
    try {
      if (isChanged) await this.#putFile(manifest, staged, stamp);
    } catch (error) {
      if (!isConflict(error) || attempt === MOST_PUTS) throw error;
      return false;
    }
    await inParallel(replacing, AT_ONCE, put);
    if (gone.length > 0) await this.#removeAll(gone, isChanged ? undefined : manifest);
    return true;
  }

  async #snapshot({ manifest, folder }: PublishedSeries): Promise<Snapshot> {
    const staged = this.stagedPath();
    const stamp = await stampAt(this.#pathOf(manifest));
    if (stamp !== undefined) await copyFile(this.#pathOf(manifest), staged);
    const folders = [folder, ...(await zipFolders(staged))];
    return { staged, stamp, ...(await changesIn(this.#root, this.#known, folders)) };
  }

  /**
   * Publishes the changes in a folder and its subfolders; `.`: the files in the root. `isConditional`: rejects with `lake-conflict` if another
   * writer has changed one of these files; otherwise they are replaced.
   */
  async publishFolder(folder: string, isConditional = false): Promise<void> {
    const folders = folder === '.' ? ['.'] : await foldersBelow(this.#root, this.#known, folder);
    const { changed, gone } = await changesIn(this.#root, this.#known, folders);
    await inParallel(changed, AT_ONCE, (key) => this.#put(key, isConditional));
    await inParallel(gone, AT_ONCE, (key) => this.#remove(key));
  }

  /** A new path for a file that is not complete. */
  stagedPath(): string {
    return join(this.#root, FOLDERS.internal, 'mirror', randomUUID());
  }

  /** Moves a fetched file to its place. */
  async place(
    staged: string,
    key: string,
    { etag, bytes, ageMs }: Pick<KnownFile, 'etag' | 'bytes' | 'ageMs'>,
  ): Promise<void> {
    const path = this.#pathOf(key);
    await makeFolder(dirname(path));
    const stamp = (await stampAt(staged)) ?? '';
    await rename(staged, path);
    this.#known.set(key, { etag, bytes, ageMs, stamp, isStub: false });
  }

  /** Replaces the bytes of a file by a stub, unless the file was changed since it was published. */
  async toStub(key: string): Promise<void> {
    const known = this.#known.get(key);
    const path = this.#pathOf(key);
    if (known === undefined || known.isStub || (await stampAt(path)) !== known.stamp) return;
    // A new file, because the present one may be open.
    const staged = this.stagedPath();
    const stamp = writeStub(staged, known.bytes);
    await rename(staged, path);
    this.#known.set(key, { ...known, stamp, isStub: true });
  }

  #pathOf(key: string): string {
    return join(this.#root, key);
  }

  /** Does nothing for a file that is no longer here. `isConditional`: puts it only in place of the known version. */
  async #put(key: string, isConditional = true): Promise<void> {
    const stamp = await stampAt(this.#pathOf(key));
    if (stamp !== undefined) await this.#putFile(key, this.#pathOf(key), stamp, isConditional);
  }

  /** Puts the file at `path`, which has the bytes that the file of the key had with this stamp. */
  async #putFile(key: string, path: string, stamp: string, isConditional = true): Promise<void> {
    const known = this.#known.get(key);
    const condition: PutCondition =
      known === undefined ? { kind: 'absent' } : { kind: 'same', etag: known.etag };
    const { etag } = await this.#bucket.put(key, path, isConditional ? condition : undefined);
    const { size } = await stat(path);
    this.#known.set(key, { etag, bytes: size, stamp, isStub: false });
  }

  /**
   * Appends our lines to those of another writer. Rejects with `lake-conflict` if the manifest in the bucket was rewritten or removed, and if
   * the other writer has written the same data. `keys`: our changed files.
   */
  async #joinLines(
    { manifest, folder, exclusively }: PublishedSeries,
    keys: readonly string[],
  ): Promise<void> {
    const changed = new Set(keys.map((key) => nameInLines(key, folder)));
    const staged = this.stagedPath();
    try {
      const found = await this.#bucket.get(manifest, staged);
      await exclusively(async () => {
        const remote = found === undefined ? undefined : await readFile(staged);
        const local = await readFile(this.#pathOf(manifest));
        const { bytes = 0 } = this.#known.get(manifest) ?? {};
        const joined = remote === undefined ? undefined : joinManifests(local, remote, bytes, changed);
        if (joined === undefined || found === undefined)
          throw new CryptodlError(
            'lake-conflict',
            `${this.#bucket.address}/${manifest} has other lines of another writer about the same data`,
            { hint: 'try again; let only one run at a time write a series' },
          );
        await writeFile(staged, joined);
        await rename(staged, this.#pathOf(manifest));
        // The stamp is that of no file: the joined manifest counts as changed.
        this.#known.set(manifest, { etag: found.etag, bytes: found.bytes, stamp: '', isStub: false });
      });
    } finally {
      await rm(staged, { force: true });
    }
  }

  /** First puts the quarantine, so that the bucket always has the bytes of a file. `manifest`: the one that no put has compared with the bucket. */
  async #removeAll(gone: readonly string[], manifest: string | undefined): Promise<void> {
    await this.publishFolder(FOLDERS.quarantine);
    // A manifest that another writer has put since may name these files.
    if (manifest !== undefined) await this.#compare(manifest);
    await inParallel(gone, AT_ONCE, (key) => this.#remove(key));
  }

  /** Removes the known version of a file. Not all servers have a condition for this, so the versions are compared first. */
  async #remove(key: string): Promise<void> {
    const etag = this.#known.get(key)?.etag;
    if (await this.#compare(key)) await this.#bucket.remove(key, etag);
    this.#known.delete(key);
  }

  /** Resolves with false if the bucket does not have the file. Rejects with `lake-conflict` if it has another version than the known one. */
  async #compare(key: string): Promise<boolean> {
    const there = await this.#bucket.head(key);
    if (there === undefined) return false;
    if (there.etag === this.#known.get(key)?.etag) return true;
    throw changedElsewhere(`${this.#bucket.address}/${key}`, there);
  }
}

/** Lines name zips by their keys, and the files in the folder of the series by their names. */
function nameInLines(key: string, seriesFolder: string): string {
  return posix.dirname(key) === seriesFolder ? posix.basename(key) : key;
}

export function isConflict(error: unknown): boolean {
  return error instanceof CryptodlError && error.code === 'lake-conflict';
}
