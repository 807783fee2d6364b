/** Publishes the changes of a mirror into its bucket. Each put names the version that it replaces, so no change of another writer is lost. */
import { randomUUID } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { FOLDERS } from '../lake/layout.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import type { Bucket } from '../s3/bucket.js';
import type { BucketObject } from '../s3/conditions.js';
import type { PutCondition } from '../s3/conditions.js';
import type { KnownFiles } from './known-files.js';
import { joinManifests } from './manifest-text.js';
import { stampAt, writeStub } from './stub.js';

/** Files of a series that are put or removed at the same time. */
const AT_ONCE = 4;
/** Attempts to join the lines of other writers to a manifest. Each failed attempt is progress of another writer. */
const MOST_JOINS = 20;

interface Changes {
  /** Keys of new and changed files. */
  readonly changed: readonly string[];
  /** Keys of files that the bucket has and the mirror no longer has. */
  readonly gone: readonly string[];
}

export class Publisher {
  readonly #bucket: Bucket;
  readonly #known: KnownFiles;
  readonly #root: string;

  constructor(bucket: Bucket, known: KnownFiles, root: string) {
    this.#bucket = bucket;
    this.#known = known;
    this.#root = root;
  }

  /**
   * Puts the changed files of a series, then its manifest, and removes the files that it no longer has. The published files become stubs.
   * Resolves with true if the manifest now has lines of another writer too. Rejects with `lake-conflict` if another writer has changed one of
   * these files, or has rewritten the manifest.
   */
  async publishSeries(folders: readonly string[], manifest: string): Promise<boolean> {
    const { changed, gone } = await this.#changesIn(folders);
    await inParallel(changed, (key) => this.#put(key));
    const isJoined = await this.#putManifest(manifest);
    // A quarantined file is in the bucket before the bucket loses it.
    if (gone.length > 0) await this.publishFolder(FOLDERS.quarantine);
    await inParallel(gone, (key) => this.#remove(key));
    for (const key of changed) await this.toStub(key);
    return isJoined;
  }

  /** Publishes the changes in a folder and its subfolders, whatever the bucket has; `.`: the files in the root. */
  async publishFolder(folder: string): Promise<void> {
    const folders = folder === '.' ? ['.'] : await this.#foldersBelow(folder);
    const { changed, gone } = await this.#changesIn(folders);
    await inParallel(changed, (key) => this.#put(key, false));
    await inParallel(gone, (key) => this.#remove(key));
  }

  /** A new path for a file that is not complete. */
  stagedPath(): string {
    return join(this.#root, FOLDERS.internal, 'mirror', randomUUID());
  }

  /** Moves a fetched file to its place. */
  async place(
    staged: string,
    key: string,
    { etag, bytes }: Pick<BucketObject, 'etag' | 'bytes'>,
  ): Promise<void> {
    const path = this.#pathOf(key);
    await makeFolder(dirname(path));
    const stamp = (await stampAt(staged)) ?? '';
    await rename(staged, path);
    this.#known.set(key, { etag, bytes, stamp, isStub: false });
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

  async #foldersBelow(folder: string): Promise<string[]> {
    const found = new Set(this.#known.foldersBelow(folder));
    const visit = async (each: string): Promise<void> => {
      found.add(each);
      for (const entry of await entriesOf(this.#pathOf(each)))
        if (entry.isDirectory()) await visit(`${each}/${entry.name}`);
    };
    await visit(folder);
    return [...found];
  }

  async #changesIn(folders: readonly string[]): Promise<Changes> {
    const changed: string[] = [];
    const gone: string[] = [];
    for (const folder of folders) {
      const keyOf = (name: string): string => (folder === '.' ? name : `${folder}/${name}`);
      const entries = await entriesOf(this.#pathOf(folder));
      const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
      const stamps = await Promise.all(names.map((name) => stampAt(this.#pathOf(keyOf(name)))));
      for (const [at, name] of names.entries())
        if (stamps[at] !== undefined && stamps[at] !== this.#known.get(keyOf(name))?.stamp)
          changed.push(keyOf(name));
      const present = new Set(entries.map(({ name }) => name));
      gone.push(
        ...this.#known
          .namesIn(folder)
          .filter((name) => !present.has(name))
          .map(keyOf),
      );
    }
    return { changed, gone };
  }

  /** `isConditional`: only in place of the known version. */
  async #put(key: string, isConditional = true): Promise<void> {
    const path = this.#pathOf(key);
    const stamp = (await stampAt(path)) ?? '';
    const known = this.#known.get(key);
    const condition: PutCondition =
      known === undefined ? { kind: 'absent' } : { kind: 'same', etag: known.etag };
    const { etag } = await this.#bucket.put(key, path, isConditional ? condition : undefined);
    const { size } = await stat(path);
    this.#known.set(key, { etag, bytes: size, stamp, isStub: false });
  }

  async #putManifest(key: string): Promise<boolean> {
    const path = this.#pathOf(key);
    if ((await stampAt(path)) === this.#known.get(key)?.stamp) return false;
    let isJoined = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#put(key);
        return isJoined;
      } catch (error) {
        if (!isConflict(error) || attempt === MOST_JOINS || !(await this.#joinLines(key, path))) throw error;
        isJoined = true;
      }
    }
  }

  /** Appends our lines to those of another writer. Resolves with false if the manifest in the bucket was rewritten or removed. */
  async #joinLines(key: string, path: string): Promise<boolean> {
    const fetched = this.stagedPath();
    const found = await this.#bucket.get(key, fetched);
    if (found === undefined) return false;
    const [local, remote] = await Promise.all([readFile(path), readFile(fetched)]);
    const base = this.#known.get(key)?.bytes ?? 0;
    const joined = joinManifests(local, remote, base);
    await rm(fetched, { force: true });
    if (joined === undefined) return false;
    const staged = this.stagedPath();
    await writeFile(staged, joined);
    await rename(staged, path);
    // The stamp is that of no file: the joined manifest counts as changed.
    this.#known.set(key, { etag: found.etag, bytes: remote.length, stamp: '', isStub: false });
    return true;
  }

  async #remove(key: string): Promise<void> {
    await this.#bucket.remove(key);
    this.#known.delete(key);
  }
}

export function isConflict(error: unknown): boolean {
  return error instanceof CryptodlError && error.code === 'lake-conflict';
}

async function entriesOf(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return [];
    throw error;
  }
}

/** Rejects with the first error, after all calls have ended. */
async function inParallel(keys: readonly string[], act: (key: string) => Promise<void>): Promise<void> {
  const waiting = [...keys];
  const errors: unknown[] = [];
  const work = async (): Promise<void> => {
    for (let key = waiting.shift(); key !== undefined && errors.length === 0; key = waiting.shift())
      await act(key).catch((error: unknown) => errors.push(error));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (errors.length > 0) throw errors[0];
}
