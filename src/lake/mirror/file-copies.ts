/**
 * Copies of data files of buckets, which commands that read a lake leave for the next one. A copy belongs to one version of an object and is
 * never changed. Without a folder that can be written there are no copies.
 */
import { createHash } from 'node:crypto';
import { copyFile, link, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempFolder, removeLeftovers, tempPath } from '../../files/temp-files.js';
import { errnoOf } from '../../model/errors.js';
import type { BucketObject } from '../s3/bucket-object.js';

type Version = Pick<BucketObject, 'key' | 'etag' | 'bytes'>;

/** Of the copies that a command adds, and of all together after it. */
const MOST_BYTES = 10 * 1024 ** 3;
const NAME = /^[0-9a-f]{64}$/;

export class FileCopies {
  #addedBytes = 0;

  /** `address`: that of the lake. Several lakes may share a folder. */
  constructor(
    private readonly folder: string,
    private readonly address: string,
    private readonly mostBytes = MOST_BYTES,
  ) {}

  /** Makes a link to the copy, or a copy of it, at a free path. Resolves with false without a copy. */
  async take(version: Version, path: string): Promise<boolean> {
    const copy = this.#pathOf(version);
    try {
      const { size, mtime } = await stat(copy);
      if (size !== version.bytes) return false;
      // The longest unused copies are removed first.
      await utimes(copy, new Date(), mtime);
      await linkOrCopy(copy, path);
      return true;
    } catch {
      await rm(path, { force: true });
      return false;
    }
  }

  /** Keeps a file. A failure is no error: the next command fetches the file again. */
  async keep(version: Version, path: string): Promise<void> {
    if (this.#addedBytes + version.bytes > this.mostBytes) return;
    this.#addedBytes += version.bytes;
    const staged = tempPath(this.folder, 'copy');
    try {
      await makeTempFolder(this.folder);
      await linkOrCopy(path, staged);
      await rename(staged, this.#pathOf(version));
    } catch {
      await rm(staged, { force: true });
    }
  }

  /** Removes the longest unused copies beyond the limit, if there is a new one. */
  async prune(): Promise<void> {
    if (this.#addedBytes === 0) return;
    await removeLeftovers(this.folder);
    const names = (await readdir(this.folder).catch(() => [])).filter((name) => NAME.test(name));
    const copies = await Promise.all(
      names.map(async (name) => {
        const path = join(this.folder, name);
        const facts = await stat(path).catch(() => undefined);
        return { path, size: facts?.size ?? 0, used: facts?.atimeMs ?? 0 };
      }),
    );
    let bytes = 0;
    for (const { path, size } of copies.sort((one, other) => other.used - one.used)) {
      bytes += size;
      if (bytes > this.mostBytes) await rm(path).catch(() => undefined);
    }
  }

  #pathOf({ key, etag, bytes }: Version): string {
    const text = JSON.stringify([this.address, key, etag, bytes]);
    return join(this.folder, createHash('sha256').update(text).digest('hex'));
  }
}

async function linkOrCopy(path: string, target: string): Promise<void> {
  try {
    await link(path, target);
  } catch (error) {
    // Another file system, or one without hard links.
    if (!['EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK'].includes(errnoOf(error))) throw error;
    await copyFile(path, target);
  }
}
