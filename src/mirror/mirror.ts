/**
 * The mirror of a lake in a bucket: an ordinary lake in a local folder. Files of the bucket are stubs until they are read. A change of a
 * series is published after its manifest was changed here: new files, the manifest, files that replace others, removals.
 */
import { randomUUID } from 'node:crypto';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type { Backing, BackingTrial } from '../lake/backing.js';
import { FOLDERS } from '../lake/layout.js';
import { manifestPlace } from '../lake/manifest-place.js';
import type { RequestCounts } from '../http/request-counts.js';
import type { Clock } from '../model/clock.js';
import { createSerializer } from '../queue/in-order.js';
import type { LakeBucket } from '../s3/bucket.js';
import { changedElsewhere } from '../s3/conditions.js';
import type { FileCopies } from './file-copies.js';
import { inParallel } from './in-parallel.js';
import { KnownFiles } from './known-files.js';
import { zipFolders } from './manifest-text.js';
import { Publications } from './publications.js';
import { isConflict, Publisher } from './publisher.js';
import { stampAt } from './stub.js';
import { Stubs } from './stubs.js';

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
  readonly requests: RequestCounts;
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
  readonly requests: RequestCounts;
  readonly #options: MirrorOptions;
  readonly #bucket: LakeBucket;
  readonly #known = new KnownFiles();
  readonly #publisher: Publisher;
  readonly #stubs: Stubs;
  /** Listings and fetches that have begun, by name. */
  readonly #once = new Once();
  /** Prefixes that were listed completely. */
  readonly #listed = new Set<string>();
  /** Folders of series that must be listed again, because another writer has changed them. */
  readonly #stale = new Set<string>();
  /** Folders of series whose manifest has got lines of another writer. */
  readonly #joined = new Set<string>();
  /** The manifests of a listed lake, in order. */
  #manifests: readonly string[] = [];
  /** The changes of each manifest take turns. */
  readonly #manifestTurns = createSerializer();
  readonly #publications = new Publications((seriesFolder) => this.#publish(seriesFolder));

  constructor(options: MirrorOptions) {
    this.#options = options;
    this.#bucket = options.bucket;
    this.root = options.root;
    this.requests = options.requests;
    this.#publisher = new Publisher(options.bucket, this.#known, options.root);
    this.#stubs = new Stubs(options, this.#known);
  }

  async openSeries(seriesFolder: string): Promise<void> {
    const folder = this.#keyOf(seriesFolder);
    const path = manifestPlace(seriesFolder).path;
    await this.#once.do(`series ${folder}`, async () => {
      const isStale = this.#stale.delete(folder);
      await Promise.all([this.#list(`${folder}/`, isStale), this.#openManifest(path, isStale)]);
      const zips = await zipFolders(path);
      await Promise.all(zips.map((each) => this.#list(`${each}/`, isStale)));
    });
  }

  async reopenSeries(seriesFolder: string): Promise<void> {
    const folder = this.#keyOf(seriesFolder);
    const { path } = manifestPlace(seriesFolder);
    const manifest = this.#keyOf(path);
    await this.#publications.settled(seriesFolder);
    await this.#manifestTurns(seriesFolder, async () => {
      // Lines that are not published yet stay. Their publication finds the changes of the other writer.
      const stamp = await stampAt(path);
      if (stamp === undefined || stamp === this.#known.get(manifest)?.stamp)
        await this.#forget(folder, [manifest]);
    });
  }

  async openFolders(folders: readonly string[]): Promise<void> {
    await Promise.all(folders.map((folder) => this.#list(`${this.#keyOf(folder)}/`)));
  }

  async openLake(folders: readonly string[]): Promise<void> {
    const parts = (this.#options.parts ?? []).flatMap((part) => folders.map((folder) => join(folder, part)));
    await this.openFolders(parts);
    // A selection of nothing is explained by what the lake has.
    const isEmpty = parts.every((part) => this.#known.foldersBelow(this.#keyOf(part)).length === 0);
    if (isEmpty) await this.openFolders(folders);
    const manifests = this.#known.foldersBelow(FOLDERS.manifests);
    this.#manifests = manifests
      .flatMap((folder) => this.#known.namesIn(folder).map((name) => `${folder}/${name}`))
      .sort();
  }

  async openFile(path: string): Promise<void> {
    const key = this.#keyOf(path);
    if (this.#isListed(key)) return;
    await this.#once.do(`file ${key}`, async () => {
      const found = await this.#bucket.head(key);
      if (found !== undefined) this.#stubs.add({ ...found, key });
    });
  }

  async bringIn(paths: readonly string[]): Promise<void> {
    await inParallel(paths, AT_ONCE, (path) => this.#bringIn(path));
  }

  async #bringIn(path: string): Promise<void> {
    const key = this.#keyOf(path);
    const known = this.#known.get(key);
    // A file that was written here in place of a stub is newer than that in the bucket.
    if (known?.isStub !== true || (await stampAt(path)) !== known.stamp) return;
    // The newest version of a manifest is always right.
    const isCompared = this.#options.comparesVersions && !key.startsWith(`${FOLDERS.manifests}/`);
    await this.#fetch(key, isCompared ? known.etag : undefined);
  }

  ageMs(path: string): number {
    return this.#known.get(this.#keyOf(path))?.ageMs ?? Number.POSITIVE_INFINITY;
  }

  async release(folders: readonly string[]): Promise<void> {
    for (const folder of folders.map((each) => this.#keyOf(each)))
      for (const name of this.#known.namesIn(folder)) await this.#publisher.toStub(`${folder}/${name}`);
  }

  tryOut(): Promise<BackingTrial> {
    return tryBucket(this.#bucket, this.#options.clock, this.#publisher.stagedPath());
  }

  async changeManifest<T>(seriesFolder: string, act: () => Promise<T>): Promise<T> {
    // Before its turn, which must not wait for the bucket.
    await this.openSeries(seriesFolder);
    const result = await this.#manifestTurns(seriesFolder, act);
    if (!this.#options.isReadOnly) {
      this.#options.onPublication?.();
      this.#publications.begin(seriesFolder);
    }
    return result;
  }

  async published(seriesFolder: string): Promise<boolean> {
    await this.#publications.done(seriesFolder);
    return this.#joined.delete(seriesFolder);
  }

  /** Resolves when all series are published. */
  endPublications(): Promise<void> {
    return this.#publications.end();
  }

  /** Publishes like `Publisher.publishFolder`. `folder`: an absolute path. */
  async publishFolder(folder: string, isConditional = false): Promise<void> {
    if (this.#options.isReadOnly) return;
    this.#options.onPublication?.();
    await this.#publisher.publishFolder(this.#keyOf(folder) || '.', isConditional);
  }

  /** The folders in the root, the quarantine first and the manifests last. */
  async foldersInRoot(): Promise<string[]> {
    const entries = await readdir(this.root, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const { internal, manifests, quarantine } = FOLDERS;
    const others = names.filter((name) => ![internal, manifests, quarantine].some((each) => each === name));
    return [quarantine, ...others, manifests];
  }

  #keyOf(path: string): string {
    return relative(this.root, path).replaceAll(sep, '/');
  }

  #isListed(key: string): boolean {
    for (let at = key.indexOf('/'); at >= 0; at = key.indexOf('/', at + 1))
      if (this.#listed.has(key.slice(0, at + 1))) return true;
    return false;
  }

  async #list(prefix: string, isStale = false): Promise<void> {
    if (isStale) this.#once.forget(`list ${prefix}`);
    else if (this.#isListed(prefix)) return;
    await this.#once.do(`list ${prefix}`, async () => {
      for await (const object of this.#bucket.list(prefix)) this.#stubs.add(object);
      this.#listed.add(prefix);
    });
  }

  async #openManifest(path: string, isStale: boolean): Promise<void> {
    const key = this.#keyOf(path);
    if (isStale || !this.#isListed(key)) await this.#fetch(key);
    else await this.#bringIn(path);
    const at = this.#manifests.indexOf(key) + 1;
    if (at === 0) return;
    for (const next of this.#manifests.slice(at, at + READ_AHEAD))
      // The reader of the manifest gets the error.
      this.#bringIn(join(this.root, next)).catch(() => undefined);
  }

  /**
   * Fetches a file in place of its stub. A file that the bucket no longer has is removed here too. Rejects with `lake-conflict` if its version
   * is not `etag`.
   */
  async #fetch(key: string, etag?: string): Promise<void> {
    await this.#once.do(`fetch ${key}`, async () => {
      const path = join(this.root, key);
      const staged = this.#publisher.stagedPath();
      const copies = isDocument(key) ? undefined : this.#options.copies;
      const listed = this.#known.get(key);
      if (listed !== undefined && (await copies?.take({ ...listed, key }, staged)) === true)
        return this.#publisher.place(staged, key, listed);
      const found = await this.#bucket.get(key, staged, {
        compares: etag !== undefined,
        maxBytes: isDocument(key) ? DOCUMENT_MAX_BYTES : undefined,
      });
      if (etag !== undefined && found?.etag !== etag) {
        await rm(staged, { force: true });
        throw changedElsewhere(`${this.#bucket.address}/${key}`, found);
      }
      if (found === undefined) {
        await rm(path, { force: true });
        this.#known.delete(key);
        return;
      }
      await copies?.keep(found, staged);
      await this.#publisher.place(staged, key, found);
    });
    this.#once.forget(`fetch ${key}`);
  }

  async #publish(seriesFolder: string): Promise<void> {
    const folder = this.#keyOf(seriesFolder);
    const manifest = this.#keyOf(manifestPlace(seriesFolder).path);
    const conflicts: string[] = [];
    const onConflict = (key: string): void => void conflicts.push(key);
    const onJoined = (): void => void this.#joined.add(seriesFolder);
    const exclusively = <T>(act: () => Promise<T>): Promise<T> => this.#manifestTurns(seriesFolder, act);
    try {
      await this.#publisher.publishSeries({ folder, manifest, exclusively, onConflict, onJoined });
    } catch (error) {
      if (isConflict(error)) await exclusively(() => this.#forget(folder, [...conflicts, manifest]));
      throw error;
    }
  }

  /**
   * Drops what is known about a series, because it lacks the changes of another writer. Files that were changed here stay, except for
   * those in conflict, of which the last one is the manifest: a commit that is under way may need them.
   */
  async #forget(folder: string, conflicts: readonly string[]): Promise<void> {
    const zips = await zipFolders(join(this.root, conflicts.at(-1) ?? ''));
    for (const each of [folder, ...zips])
      for (const name of this.#known.namesIn(each)) {
        const key = `${each}/${name}`;
        const stamp = await stampAt(join(this.root, key));
        // A file that was removed here may be needed with the changes of the other writer.
        if (stamp === undefined || stamp === this.#known.get(key)?.stamp) await this.#drop(key);
      }
    for (const key of conflicts) await this.#drop(key);
    this.#once.forget(`series ${folder}`);
    this.#stale.add(folder);
  }

  async #drop(key: string): Promise<void> {
    await rm(join(this.root, key), { force: true, recursive: true });
    this.#known.delete(key);
  }
}

/** The files of the program itself: manifests, failure reports, records of runs. */
function isDocument(key: string): boolean {
  const folder = key.slice(0, key.indexOf('/') + 1);
  return [FOLDERS.manifests, FOLDERS.failures, FOLDERS.internal].some((each) => folder === `${each}/`);
}

/** Work that is done once for each name. */
class Once {
  readonly #begun = new Map<string, Promise<void>>();

  /** Calls `act` once for a name. A failed call may be repeated. */
  async do(name: string, act: () => Promise<void>): Promise<void> {
    const begun = this.#begun.get(name) ?? act();
    this.#begun.set(name, begun);
    try {
      await begun;
    } catch (error) {
      this.forget(name);
      throw error;
    }
  }

  /** The next call of `do` does the work again. */
  forget(name: string): void {
    this.#begun.delete(name);
  }
}

/**
 * Puts a small file into a bucket, tries to replace it against its condition, and removes it. `staged`: a free path. Rejects with the error of the
 * bucket. The object is removed in any case.
 */
async function tryBucket(
  bucket: LakeBucket,
  clock: Pick<Clock, 'monotonic'>,
  staged: string,
): Promise<BackingTrial> {
  const key = `${FOLDERS.internal}/trial-${randomUUID()}`;
  try {
    await writeFile(staged, 'first');
    const begunAt = clock.monotonic();
    await bucket.put(key, staged, { kind: 'absent' });
    const putMs = clock.monotonic() - begunAt;
    await writeFile(staged, 'second');
    const keepsConditions = await bucket.put(key, staged, { kind: 'absent' }).then(
      () => false,
      (error: unknown) => {
        if (isConflict(error)) return true;
        throw error;
      },
    );
    return { putMs, isAtomic: keepsConditions && bucket.hasConditions };
  } finally {
    await rm(staged, { force: true });
    await bucket.remove(key).catch(() => undefined);
  }
}
