/** Publishes the changes of a mirror into its bucket. Each put names the version that it replaces, so no change of another writer is lost. */
import { copyFile, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { FOLDERS } from '../layout.js';
import { safeKeyPath } from '../safe-names.js';
import { CryptodlError } from '../../model/errors.js';
import { createSerializer } from '../../model/in-order.js';
import type { LakeBucket } from '../s3/bucket.js';
import type { KnownFiles } from './known-files.js';
import { filesOfLines, nameInLines, withZip, zipFolders, joinManifests } from './manifest-text.js';
import { inParallel } from './in-parallel.js';

/** Files of a series that are put or removed at the same time. */
const AT_ONCE = 8;
/** Attempts to put a manifest. Each failed attempt is progress of another writer. */
const MOST_PUTS = 20;

/** A series that is published. Folder and manifest are keys. */
interface PublishedSeries {
  readonly folder: string;
  readonly manifest: string;
  /** Keys of files that another writer has changed. */
  readonly conflicts: string[];
}

/** A series at one moment. Later commits change neither the copy of the manifest nor these files. */
interface Snapshot {
  /** The path of the copy, if there is a manifest. */
  readonly staged: string;
  /** The stamp of the manifest; undefined without one. */
  readonly stamp: string | undefined;
  readonly folders: readonly string[];
  readonly changed: readonly string[];
  /** Keys of files that the series no longer has. */
  readonly gone: readonly string[];
}

export class Publisher {
  /** The changes of each manifest take turns. The name is the folder of the series. */
  readonly inTurn = createSerializer();
  /** The last publication of each series. */
  readonly #last = new Map<string, Promise<void>>();
  /** Series whose last publication has not begun. */
  readonly #waiting = new Set<string>();
  readonly #timesChanged = new Map<string, number>();

  /** `forget`: drops what is known about a series, also the files in conflict, of which the last one is the manifest. */
  constructor(
    private readonly bucket: LakeBucket,
    private readonly known: KnownFiles,
    private readonly forget: (folder: string, conflicts: readonly string[]) => Promise<void>,
  ) {}

  /** Publishes a series, after the publication that runs. Changes that come before it begins are published together. */
  begin(folder: string): void {
    if (this.#waiting.has(folder)) return;
    this.#waiting.add(folder);
    const publication = this.#publishAfter(this.#last.get(folder), folder);
    // The callers of `done` get the error.
    publication.catch(() => undefined);
    this.#last.set(folder, publication);
  }

  async #publishAfter(earlier: Promise<void> | undefined, folder: string): Promise<void> {
    try {
      await earlier;
    } catch (error) {
      // The mirror has forgotten the series, and with it the changes that came meanwhile.
      if (isConflict(error)) throw error;
    } finally {
      this.#waiting.delete(folder);
    }
    await this.#publishSeries(folder);
  }

  timesChanged(folder: string): number {
    return this.#timesChanged.get(folder) ?? 0;
  }

  countChange(folder: string): void {
    this.#timesChanged.set(folder, this.timesChanged(folder) + 1);
  }

  /** Resolves when the changes before this call are published. */
  async done(folder: string): Promise<void> {
    const last = this.#last.get(folder);
    try {
      await last;
    } finally {
      if (this.#last.get(folder) === last) this.#last.delete(folder);
    }
  }

  /** Resolves when the publications of a series so far have ended, with or without an error. */
  async settled(folder: string): Promise<void> {
    await this.#last.get(folder)?.catch(() => undefined);
  }

  /** Resolves when all series are published. A publication that failed unnoticed is repeated, and its error is thrown. */
  async end(): Promise<void> {
    for (const folder of this.#last.keys())
      await this.done(folder).catch(() => {
        this.begin(folder);
        return this.done(folder);
      });
  }

  /**
   * Puts the quarantined files of a series, then its new files, its manifest, and the files that replace others; last, removes the files that
   * the series no longer has. The published files become stubs. Rejects with `lake-conflict` if another writer has changed one of these files, or has rewritten
   * the manifest.
   */
  async #publishSeries(folder: string): Promise<void> {
    const series: PublishedSeries = { folder, manifest: this.known.manifestOf(folder), conflicts: [] };
    const published = new Set<string>();
    try {
      for (let attempt = 1; ; attempt += 1) {
        const snapshot = await this.inTurn(folder, () => this.#snapshot(series));
        for (const key of snapshot.changed) published.add(key);
        try {
          if (await this.#publishSnapshot(series, snapshot, attempt)) break;
          await this.#joinLines(series, [...published, ...snapshot.gone]);
        } finally {
          await rm(snapshot.staged, { force: true });
        }
      }
    } catch (error) {
      if (isConflict(error)) await this.forget(folder, [...series.conflicts, series.manifest]);
      throw error;
    }
    for (const key of published) this.known.toStub(key);
  }

  /** Resolves with false if another writer has changed the manifest; at the last attempt, rejects with `lake-conflict`. */
  async #publishSnapshot(series: PublishedSeries, snapshot: Snapshot, attempt: number): Promise<boolean> {
    const { manifest, folder } = series;
    const { staged, stamp, folders, changed, gone } = snapshot;
    // First, so that the bucket always has the bytes of a file.
    for (const each of folders) await this.publishFolder(`${FOLDERS.quarantine}/${safeKeyPath(each)}`, false);
    // Some commit of the manifest replaces them.
    const replaced = new Set(await filesOfLines(staged, '"fileBefore"'));
    const isReplaced = (key: string): boolean =>
      this.known.get(key) !== undefined && replaced.has(nameInLines(key, folder));
    // Chosen before the puts, because they make files known.
    const replacing = new Set(changed.filter((key) => withZip(key).some(isReplaced)));
    const put = (key: string): Promise<void> =>
      this.#put(key).catch((error: unknown) => {
        if (isConflict(error)) series.conflicts.push(key);
        throw error;
      });
    await inParallel(
      changed.filter((key) => !replacing.has(key)),
      AT_ONCE,
      put,
    );
    const isChanged = stamp !== undefined && stamp !== this.known.get(manifest)?.stamp;
    try {
      if (isChanged) await this.#putFile(manifest, staged, stamp);
    } catch (error) {
      if (!isConflict(error) || attempt === MOST_PUTS) throw error;
      return false;
    }
    await inParallel(replacing, AT_ONCE, put);
    // A manifest that no put has compared with the bucket may name these files there.
    if (gone.length > 0 && !isChanged) await this.#compare(manifest);
    await inParallel(gone, AT_ONCE, (key) => this.#remove(key));
    return true;
  }

  async #snapshot({ manifest, folder }: PublishedSeries): Promise<Snapshot> {
    const staged = this.known.stagedPath();
    this.known.refuseLost(manifest);
    const stamp = this.known.stampOf(manifest);
    if (stamp !== undefined) await copyFile(this.known.pathOf(manifest), staged);
    const folders = [folder, ...(await zipFolders(staged))];
    const changed = await this.known.changedIn(folders);
    return { staged, stamp, folders, changed, gone: await this.known.goneIn(folders) };
  }

  /**
   * Publishes the changes in a folder and its subfolders; `.`: the files in the root. `isConditional`: rejects with `lake-conflict` if another
   * writer has changed one of these files; otherwise they are replaced. Rejects with `disk`, and changes nothing, if a file is lost.
   */
  async publishFolder(folder: string, isConditional = true): Promise<void> {
    const folders = folder === '.' ? ['.'] : await this.known.allFoldersBelow(folder);
    const changed = await this.known.changedIn(folders);
    const gone = await this.known.goneIn(folders);
    await inParallel(changed, AT_ONCE, (key) => this.#put(key, isConditional));
    await inParallel(gone, AT_ONCE, (key) => this.#remove(key));
  }

  /** Does nothing for a file that was removed on purpose. `isConditional`: puts it only in place of the known version. */
  async #put(key: string, isConditional = true): Promise<void> {
    this.known.refuseLost(key);
    const stamp = this.known.stampOf(key);
    if (stamp !== undefined) await this.#putFile(key, this.known.pathOf(key), stamp, isConditional);
  }

  /** Puts the file at `path`, which has the bytes that the file of the key had with this stamp. */
  async #putFile(key: string, path: string, stamp: string, isConditional = true): Promise<void> {
    const replaces = this.known.get(key)?.etag ?? null;
    const { etag } = await this.bucket.put(key, path, isConditional ? replaces : undefined);
    const { size } = await stat(path);
    this.known.set(key, { etag, bytes: size, stamp, isStub: false });
  }

  /**
   * Appends our lines to those of another writer. Rejects with `lake-conflict` if the manifest in the bucket was rewritten or removed, and if
   * the other writer has written the same data. `keys`: our changed files.
   */
  async #joinLines({ manifest, folder }: PublishedSeries, keys: readonly string[]): Promise<void> {
    const changed = new Set(keys.map((key) => nameInLines(key, folder)));
    const staged = this.known.stagedPath();
    try {
      const found = await this.bucket.get(manifest, staged);
      await this.inTurn(folder, async () => {
        const remote = found === undefined ? undefined : await readFile(staged);
        const local = await readFile(this.known.pathOf(manifest));
        const { bytes = 0 } = this.known.get(manifest) ?? {};
        const joined = remote === undefined ? undefined : joinManifests(local, remote, bytes, changed);
        if (joined === undefined || found === undefined)
          throw new CryptodlError(
            'lake-conflict',
            `${this.bucket.address}/${manifest} has other lines of another writer about the same data`,
            { hint: 'try again; let only one run at a time write a series' },
          );
        await writeFile(staged, joined);
        await rename(staged, this.known.pathOf(manifest));
        // The stamp is that of no file: the joined manifest counts as changed.
        this.known.set(manifest, { etag: found.etag, bytes: found.bytes, stamp: '', isStub: false });
        this.countChange(folder);
      });
    } finally {
      await rm(staged, { force: true });
    }
  }

  /** Removes the known version of a file. Not all servers have a condition for this, so the versions are compared first. */
  async #remove(key: string): Promise<void> {
    const etag = this.known.get(key)?.etag;
    if (await this.#compare(key)) await this.bucket.remove(key, etag);
    this.known.delete(key);
  }

  /** Resolves with false if the bucket does not have the file. Rejects with `lake-conflict` if it has another version than the known one. */
  async #compare(key: string): Promise<boolean> {
    const there = await this.bucket.head(key);
    if (there === undefined) return false;
    if (there.etag === this.known.get(key)?.etag) return true;
    throw this.bucket.changedElsewhere(key, there);
  }
}

const isConflict = (error: unknown): boolean =>
  error instanceof CryptodlError && error.code === 'lake-conflict';
