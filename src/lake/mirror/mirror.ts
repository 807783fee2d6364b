/**
 * The mirror of a lake in a bucket: an ordinary lake in a local folder. Files of the bucket are stubs until they are read. A change of a
 * series is published after its manifest was changed here: new files, the manifest, files that replace others, removals.
 */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { Backing, BackingTrial } from '../../files/backing.js';
import { FOLDERS } from '../layout.js';
import type { FollowedRequests } from '../../model/observer.js';
import type { Clock } from '../../model/clock.js';
import { SharedResources } from '../../model/shared-resources.js';
import { createSerializer } from '../../model/in-order.js';
import type { LakeBucket } from '../s3/bucket.js';
import type { FileCopies } from './file-copies.js';
import { KnownFiles } from './known-files.js';
import { filesOfLines, nameInLines, withZip, zipFolders } from './manifest-text.js';
import { Publisher } from './publisher.js';
import { inParallel } from './in-parallel.js';

export interface MirrorOptions {
  readonly bucket: LakeBucket;
  readonly root: string;
  /** A mirror that is only read publishes nothing. */
  readonly isReadOnly: boolean;
  /** Whether a file must be the listed version when it is brought in, because it is compared with the manifest. */
  readonly comparesVersions: boolean;
  /** Copies of data files, for commands that read. */
  readonly copies?: FileCopies | undefined;
  /** The folders of the exchange that the command needs, relative to the folder of the exchange; none: all. */
  readonly parts?: readonly string[];
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly requests: FollowedRequests;
  readonly warn: (message: string) => void;
  /** Called before each publication. */
  readonly onPublication?: () => void;
}

/** Files that are brought in at the same time. */
const AT_ONCE = 16;

/** Manifests that are fetched before they are read, if the whole lake is read. */
const READ_AHEAD = 16;

/** The largest manifest or report that is fetched: millions of lines. */
const DOCUMENT_MAX_BYTES = 512 * 1024 * 1024;

export class Mirror implements Backing {
  readonly root: string;
  readonly requests: FollowedRequests;
  readonly #known: KnownFiles;
  readonly #publisher: Publisher;
  /** Listings and fetches that have begun, by name. */
  readonly #once = new SharedResources();
  /** Prefixes that were listed completely. */
  readonly #listed = new Set<string>();
  /** Folders that must be listed again, because another writer has changed them. */
  readonly #stale = new Set<string>();
  /** Uses of each series that have begun. */
  readonly #uses = new Map<string, Set<Promise<unknown>>>();
  /** The beginnings of uses, and the changes that wait for the end of all uses, take turns. */
  readonly #beginning = createSerializer();
  /** The manifests of a listed lake, in order. */
  #manifests: readonly string[] = [];

  constructor(private readonly options: MirrorOptions) {
    this.root = options.root;
    this.requests = options.requests;
    let hasWarned = false;
    this.#known = new KnownFiles(this.root, (key) => {
      if (!hasWarned)
        options.warn(`${options.bucket.address}/${key} cannot be a file of a lake, and is left out`);
      hasWarned = true;
    });
    this.#publisher = new Publisher(options.bucket, this.#known, (folder, conflicts) =>
      this.#whenUnused(folder, () => this.#forget(folder, conflicts)),
    );
  }

  async openSeries(seriesFolder: string): Promise<void> {
    const folder = this.#known.keyOf(seriesFolder);
    const manifest = this.#known.manifestOf(folder);
    await this.#once.once(`series ${folder}`, async () => {
      const isStale = this.#stale.delete(folder);
      await Promise.all([this.#list(`${folder}/`, isStale), this.#openManifest(manifest, isStale)]);
      const zips = await zipFolders(this.#known.pathOf(manifest));
      await Promise.all(zips.map((each) => this.#list(`${each}/`, isStale)));
    });
  }

  async reopenSeries(seriesFolder: string): Promise<void> {
    const folder = this.#known.keyOf(seriesFolder);
    const manifest = this.#known.manifestOf(folder);
    await this.#publisher.settled(folder);
    await this.#whenUnused(folder, async () => {
      // Lines that are not published yet stay. Their publication finds the changes of the other writer.
      if (!this.#known.isChanged(manifest)) await this.#forget(folder, [manifest]);
    });
  }

  timesChanged(seriesFolder: string): number {
    return this.#publisher.timesChanged(this.#known.keyOf(seriesFolder));
  }

  async using<T>(seriesFolder: string, act: () => Promise<T>): Promise<T> {
    const folder = this.#known.keyOf(seriesFolder);
    const uses = this.#uses.get(folder) ?? new Set();
    this.#uses.set(folder, uses);
    const { use } = await this.#beginning(folder, () => {
      const begun = act();
      uses.add(begun);
      // Not awaited: the next one may begin.
      return Promise.resolve({ use: begun });
    });
    return use.finally(() => uses.delete(use));
  }

  /** Calls `act` in its turn, after all uses of the series have ended. No other one begins meanwhile. */
  #whenUnused<T>(folder: string, act: () => Promise<T>): Promise<T> {
    return this.#beginning(folder, async () => {
      await Promise.allSettled(this.#uses.get(folder) ?? new Set<Promise<unknown>>());
      return this.#publisher.inTurn(folder, act);
    });
  }

  async openFolders(folders: readonly string[]): Promise<void> {
    const keys = folders.map((folder) => this.#known.keyOf(folder));
    await Promise.all(keys.map((key) => this.#list(`${key}/`, this.#stale.delete(key))));
    await this.#known.goneIn(keys);
  }

  async reopenFolder(path: string): Promise<void> {
    const folder = this.#known.keyOf(path);
    const changed = await this.#known.changedIn([folder]);
    for (const key of [...changed, ...this.#known.keysIn(folder)]) this.#drop(key);
    await this.#list(`${folder}/`, true);
  }

  async openLake(folders: readonly string[]): Promise<void> {
    const parts = (this.options.parts ?? []).flatMap((part) => folders.map((folder) => join(folder, part)));
    await this.openFolders(parts);
    // A selection of nothing is explained by what the lake has.
    const isEmpty = parts.every((part) => this.#known.foldersBelow(this.#known.keyOf(part)).length === 0);
    if (isEmpty) await this.openFolders(folders);
    const manifests = this.#known.foldersBelow(FOLDERS.manifests);
    this.#manifests = manifests.flatMap((folder) => this.#known.keysIn(folder)).sort();
  }

  async openFile(path: string): Promise<void> {
    const key = this.#known.keyOf(path);
    if (this.#isListed(key)) return;
    await this.#once.once(`file ${key}`, async () => {
      const found = await this.options.bucket.head(key);
      if (found !== undefined) this.#known.addStub({ ...found, key });
    });
  }

  async bringIn(paths: readonly string[]): Promise<void> {
    await inParallel(paths, AT_ONCE, (path) => this.#bringIn(this.#known.keyOf(path)));
  }

  async #bringIn(key: string): Promise<void> {
    const known = this.#known.get(key);
    // A file that was written here in place of a stub is newer than that in the bucket.
    this.#known.refuseLost(key);
    if (known?.isStub !== true || !this.#known.isAsKnown(key)) return;
    // The newest version of a manifest is always right.
    const isCompared = this.options.comparesVersions && !key.startsWith(`${FOLDERS.manifests}/`);
    await this.#fetch(key, isCompared ? known.etag : undefined);
  }

  ageMs(path: string): number {
    return this.#known.get(this.#known.keyOf(path))?.ageMs ?? Number.POSITIVE_INFINITY;
  }

  wrote(path: string): void {
    this.#known.wrote(this.#known.keyOf(path));
  }

  removes(path: string): void {
    this.#known.removes(this.#known.keyOf(path));
  }

  refuseLost(path: string): void {
    this.#known.refuseLost(this.#known.keyOf(path));
  }

  release(folders: readonly string[]): void {
    for (const folder of folders.map((each) => this.#known.keyOf(each)))
      for (const key of this.#known.keysIn(folder)) this.#known.toStub(key);
  }

  /** Puts a small file, tries to replace it against each condition of a publication, and removes it in any case. */
  async tryOut(): Promise<BackingTrial> {
    const { bucket, clock } = this.options;
    const key = `${FOLDERS.internal}/trial-${randomUUID()}`;
    const staged = this.#known.stagedPath();
    try {
      await writeFile(staged, 'first');
      // The first put of a bucket tries its conditions.
      await bucket.put(key, staged, null);
      const begunAt = clock.monotonic();
      await bucket.put(key, staged);
      return { putMs: clock.monotonic() - begunAt, isAtomic: bucket.hasConditions };
    } finally {
      await rm(staged, { force: true });
      await bucket.remove(key).catch(() => undefined);
    }
  }

  async changeManifest<T>(seriesFolder: string, act: () => Promise<T>): Promise<T> {
    // Before its turn, which must not wait for the bucket.
    await this.openSeries(seriesFolder);
    const folder = this.#known.keyOf(seriesFolder);
    const result = await this.#publisher.inTurn(folder, act);
    if (!this.options.isReadOnly) {
      this.options.onPublication?.();
      this.#publisher.begin(folder);
    }
    return result;
  }

  published(seriesFolder: string): Promise<void> {
    return this.#publisher.done(this.#known.keyOf(seriesFolder));
  }

  /** Resolves when all series are published. */
  endPublications(): Promise<void> {
    return this.#publisher.end();
  }

  /** Publishes like `Publisher.publishFolder`. `folder`: an absolute path. */
  async publishFolder(folder: string, isConditional = true): Promise<void> {
    if (this.options.isReadOnly) return;
    this.options.onPublication?.();
    await this.#publisher.publishFolder(this.#known.keyOf(folder) || '.', isConditional);
  }

  /** The folders in the root, the quarantine first and the manifests last. */
  async foldersInRoot(): Promise<string[]> {
    const entries = await readdir(this.root, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const { internal, manifests, quarantine } = FOLDERS;
    const others = names.filter((name) => ![internal, manifests, quarantine].some((each) => each === name));
    return [quarantine, ...others, manifests];
  }

  #isListed(key: string): boolean {
    for (let at = key.indexOf('/'); at >= 0; at = key.indexOf('/', at + 1))
      if (this.#listed.has(key.slice(0, at + 1))) return true;
    return false;
  }

  async #list(prefix: string, isStale = false): Promise<void> {
    if (isStale) this.#once.forget(`list ${prefix}`);
    else if (this.#isListed(prefix)) return;
    await this.#once.once(`list ${prefix}`, async () => {
      for await (const object of this.options.bucket.list(prefix)) this.#known.addStub(object);
      this.#listed.add(prefix);
    });
  }

  async #openManifest(key: string, isStale: boolean): Promise<void> {
    if (isStale || !this.#isListed(key)) await this.#fetch(key);
    else await this.#bringIn(key);
    const at = this.#manifests.indexOf(key) + 1;
    if (at === 0) return;
    for (const next of this.#manifests.slice(at, at + READ_AHEAD))
      // The reader of the manifest gets the error.
      this.#bringIn(next).catch(() => undefined);
  }

  /**
   * Fetches a file in place of its stub. A file that the bucket no longer has is removed here too. Rejects with `lake-conflict` if its version
   * is not `etag`.
   */
  async #fetch(key: string, etag?: string): Promise<void> {
    await this.#once.once(`fetch ${key}`, async () => {
      const staged = this.#known.stagedPath();
      const copies = isDocument(key) ? undefined : this.options.copies;
      const listed = this.#known.get(key);
      if (listed !== undefined && (await copies?.take({ ...listed, key }, staged)) === true)
        return this.#known.place(staged, key, listed);
      const found = await this.options.bucket.get(key, staged, {
        compares: etag !== undefined,
        maxBytes: isDocument(key) ? DOCUMENT_MAX_BYTES : undefined,
      });
      if (etag !== undefined && found?.etag !== etag) {
        await rm(staged, { force: true });
        throw this.options.bucket.changedElsewhere(key, found);
      }
      if (found === undefined) {
        this.#drop(key);
        return;
      }
      await copies?.keep(found, staged);
      await this.#known.place(staged, key, found);
    });
    this.#once.forget(`fetch ${key}`);
  }

  /**
   * Drops what is known about a series, because it lacks the changes of another writer. Files that were changed here stay, because a commit
   * that is under way may need them, except for those in conflict, of which the last one is the manifest, and for those of its lines that are
   * not published: lines and files of a commit are dropped together.
   */
  async #forget(folder: string, conflicts: readonly string[]): Promise<void> {
    const manifest = conflicts.at(-1) ?? '';
    const path = this.#known.pathOf(manifest);
    const folders = [folder, ...(await zipFolders(path))];
    const unpublished = new Set(await filesOfLines(path, '"file"', this.#known.get(manifest)?.bytes));
    const isUnpublished = (key: string): boolean => unpublished.has(nameInLines(key, folder));
    const changed = await this.#known.changedIn(folders);
    // A file that was removed here may be needed with the changes of the other writer.
    for (const key of [...changed, ...folders.flatMap((each) => this.#known.keysIn(each))])
      if (withZip(key).some(isUnpublished) || !this.#known.isChanged(key)) this.#drop(key);
    for (const key of conflicts) {
      this.#drop(key);
      this.#stale.add(posix.dirname(key));
    }
    this.#once.forget(`series ${folder}`);
    this.#stale.add(folder);
    this.#publisher.countChange(folder);
  }

  #drop(key: string): void {
    // At once, because a known file that is missing is lost.
    rmSync(this.#known.pathOf(key), { force: true, recursive: true });
    this.#known.delete(key);
  }
}

/** The files of the program itself: manifests, failure reports, records of runs. */
function isDocument(key: string): boolean {
  const folder = key.slice(0, key.indexOf('/') + 1);
  return [FOLDERS.manifests, FOLDERS.failures, FOLDERS.internal].some((each) => folder === `${each}/`);
}
