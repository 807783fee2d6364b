/** Publishes the changes of a mirror into its bucket. Each put names the version that it replaces, so no change of another writer is lost. */
import { randomUUID } from 'node:crypto';
import { copyFile, link, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { FOLDERS } from '../lake/layout.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import type { LakeBucket } from '../s3/bucket.js';
import { changedElsewhere } from '../s3/conditions.js';
import type { BucketObject } from '../s3/conditions.js';
import type { PutCondition } from '../s3/conditions.js';
import { inParallel } from './in-parallel.js';
import { changesIn, foldersBelow } from './changes.js';
import type { KnownFiles } from './known-files.js';
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
}

/** A copy of a manifest, and the stamp of the manifest at that time. Without a manifest, there is no stamp and no copy at `staged`. */
interface ManifestCopy {
  readonly staged: string;
  readonly stamp: string | undefined;
}

/** A changed file as it was when the manifest was copied. */
interface ChangedFile {
  readonly key: string;
  /** The path of a link to the file, or of a copy. */
  readonly staged: string;
  readonly stamp: string;
}

/** A series at one moment. Later commits change neither the copy nor these files. */
interface Snapshot {
  readonly copy: ManifestCopy;
  readonly changed: readonly ChangedFile[];
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
   * has. The published files become stubs. Resolves with true if the manifest now has lines of another writer too. Rejects with `lake-conflict`
   * if another writer has changed one of these files, or has rewritten the manifest.
   */
  async publishSeries(series: PublishedSeries): Promise<boolean> {
    const published = new Set<string>();
    let isJoined = false;
    for (let attempt = 1; ; attempt += 1) {
      const { copy, changed, gone } = await series.exclusively(() => this.#snapshot(series));
      try {
        for (const { key } of changed) published.add(key);
        const replaced = await replacedFiles(copy.staged);
        const isReplaced = (key: string): boolean =>
          this.#known.get(key) !== undefined && replaced.has(nameInLines(key, series.folder));
        // Chosen before the puts, because they make files known. A sidecar, `a.zip.CHECKSUM`, goes with its zip.
        const replacing = new Set(
          changed.filter(({ key }) => isReplaced(key) || isReplaced(key.replace(/\.[^./]*$/, ''))),
        );
        const put = (file: ChangedFile): Promise<void> => this.#putChanged(file, series.onConflict);
        const fresh = changed.filter((file) => !replacing.has(file));
        await inParallel(fresh, AT_ONCE, put);
        const comparesManifest = !this.#isChanged(series.manifest, copy.stamp);
        if (await this.#putCopy(series.manifest, copy, attempt)) {
          await inParallel(replacing, AT_ONCE, put);
          await this.#removeAll(gone, series, comparesManifest);
          for (const key of published) await this.toStub(key);
          return isJoined;
        }
        await this.#joinLines(series, copy, [...published, ...gone]);
        isJoined = true;
      } finally {
        for (const { staged } of [copy, ...changed]) await rm(staged, { force: true });
      }
    }
  }

  async #snapshot({ manifest, folder }: PublishedSeries): Promise<Snapshot> {
    const copy = await this.#copyOf(manifest);
    const folders = [folder, ...(await zipFolders(copy.staged))];
    const { changed, gone } = await changesIn(this.#root, this.#known, folders);
    const linked: ChangedFile[] = [];
    for (const key of changed) {
      const file = { key, staged: this.stagedPath(), stamp: (await stampAt(this.#pathOf(key))) ?? '' };
      if (await linkOrCopy(this.#pathOf(key), file.staged)) linked.push(file);
    }
    return { copy, changed: linked, gone };
  }

  /**
   * Publishes the changes in a folder and its subfolders; `.`: the files in the root. `isConditional`: rejects with `lake-conflict` if another
   * writer has changed one of these files; otherwise they are replaced.
   */
  async publishFolder(folder: string, isConditional = false): Promise<void> {
    const folders = folder === '.' ? ['.'] : await foldersBelow(this.#root, this.#known, folder);
    const { changed, gone } = await changesIn(this.#root, this.#known, folders);
    await inParallel(changed, AT_ONCE, (key) => this.#put(key, this.#pathOf(key), isConditional));
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
    { etag, bytes, ageMs }: Pick<BucketObject, 'etag' | 'bytes' | 'ageMs'>,
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

  /** Puts the file at `path`. `isConditional`: only in place of the known version. `stamp`: of the file in the mirror, if `path` is a link or copy of it. */
  async #put(key: string, path: string, isConditional = true, stamp?: string): Promise<void> {
    const own = stamp ?? (await stampAt(path)) ?? '';
    const known = this.#known.get(key);
    const condition: PutCondition =
      known === undefined ? { kind: 'absent' } : { kind: 'same', etag: known.etag };
    const { etag } = await this.#bucket.put(key, path, isConditional ? condition : undefined);
    const { size } = await stat(path);
    this.#known.set(key, { etag, bytes: size, stamp: own, isStub: false });
  }

  async #putChanged({ key, staged, stamp }: ChangedFile, onConflict: (key: string) => void): Promise<void> {
    try {
      await this.#put(key, staged, true, stamp);
    } catch (error) {
      if (isConflict(error)) onConflict(key);
      throw error;
    }
  }

  async #copyOf(manifest: string): Promise<ManifestCopy> {
    const staged = this.stagedPath();
    const stamp = await stampAt(this.#pathOf(manifest));
    if (stamp !== undefined) await copyFile(this.#pathOf(manifest), staged);
    return { staged, stamp };
  }

  /** Resolves with false if another writer has changed the manifest; at the last attempt, rejects with `lake-conflict`. */
  async #putCopy(key: string, { staged, stamp }: ManifestCopy, attempt: number): Promise<boolean> {
    if (!this.#isChanged(key, stamp)) return true;
    try {
      await this.#put(key, staged, true, stamp);
      return true;
    } catch (error) {
      if (!isConflict(error) || attempt === MOST_PUTS) throw error;
      return false;
    }
  }

  /**
   * Appends our lines to those of another writer. Rejects with `lake-conflict` if the manifest in the bucket was rewritten or removed, and if
   * the other writer has written the same data. `keys`: our changed files.
   */
  async #joinLines(series: PublishedSeries, copy: ManifestCopy, keys: readonly string[]): Promise<void> {
    const { manifest, folder } = series;
    const changed = new Set(keys.map((key) => nameInLines(key, folder)));
    const fetched = this.stagedPath();
    try {
      const found = await this.#bucket.get(manifest, fetched);
      const remote = found === undefined ? Buffer.alloc(0) : await readFile(fetched);
      const copiedBytes = (await readFile(copy.staged)).length;
      await series.exclusively(async () => {
        const local = await readFile(this.#pathOf(manifest));
        // The bucket may have our copy: the answer to a put may be lost.
        const common = [copiedBytes, this.#known.get(manifest)?.bytes ?? 0];
        const joined = found === undefined ? undefined : joinManifests(local, remote, common, changed);
        if (joined === undefined || found === undefined)
          throw new CryptodlError(
            'lake-conflict',
            `${this.#bucket.address}/${manifest} has other lines of another writer about the same data`,
            { hint: 'try again; let only one run at a time write a series' },
          );
        const staged = this.stagedPath();
        await writeFile(staged, joined);
        await rename(staged, this.#pathOf(manifest));
        // The stamp is that of no file: the joined manifest counts as changed.
        this.#known.set(manifest, { etag: found.etag, bytes: remote.length, stamp: '', isStub: false });
      });
    } finally {
      await rm(fetched, { force: true });
    }
  }

  /** First puts the quarantine, so that the bucket always has the bytes of a file. `comparesManifest`: no put has compared the manifest with the bucket. */
  async #removeAll(
    gone: readonly string[],
    { manifest, onConflict }: PublishedSeries,
    comparesManifest: boolean,
  ): Promise<void> {
    if (gone.length === 0) return;
    await this.publishFolder(FOLDERS.quarantine);
    // A manifest that another writer has put since may name these files.
    if (comparesManifest) await this.#compare(manifest);
    await inParallel(gone, AT_ONCE, async (key) => {
      try {
        await this.#remove(key);
      } catch (error) {
        if (isConflict(error)) onConflict(key);
        throw error;
      }
    });
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

  #isChanged(key: string, stamp: string | undefined): boolean {
    return stamp !== undefined && stamp !== this.#known.get(key)?.stamp;
  }
}

/** Lines name zips by their keys, and the files in the folder of the series by their names. */
function nameInLines(key: string, seriesFolder: string): string {
  return posix.dirname(key) === seriesFolder ? posix.basename(key) : key;
}

export function isConflict(error: unknown): boolean {
  return error instanceof CryptodlError && error.code === 'lake-conflict';
}

/** Resolves with false if the file does not exist. */
async function linkOrCopy(path: string, target: string): Promise<boolean> {
  try {
    await link(path, target);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    // The file system has no hard links.
    await copyFile(path, target);
    return true;
  }
}
