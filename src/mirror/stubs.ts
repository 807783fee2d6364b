/** The stubs of a mirror. Objects that cannot be files beside the other files of a lake are left out. */
import { rmSync } from 'node:fs';
import { join, posix } from 'node:path';
import { isPartitionFile } from '../lake/path-checks.js';
import { errnoOf } from '../model/errors.js';
import type { LakeBucket } from '../s3/bucket.js';
import type { BucketObject } from '../s3/conditions.js';
import type { KnownFiles } from './known-files.js';
import { writeStub } from './stub.js';

/** Errors of the file system about the name or the size of a file. */
const OF_KEY: ReadonlySet<string> = new Set([
  'EEXIST',
  'EISDIR',
  'ENOTDIR',
  'ENAMETOOLONG',
  'EFBIG',
  'EINVAL',
]);

interface StubOptions {
  readonly root: string;
  readonly bucket: Pick<LakeBucket, 'address'>;
  readonly warn: (message: string) => void;
}

export class Stubs {
  readonly #options: StubOptions;
  readonly #known: KnownFiles;
  #hasWarned = false;

  constructor(options: StubOptions, known: KnownFiles) {
    this.#options = options;
    this.#known = known;
  }

  /** Does nothing for a known object. Warns once of objects that are left out. */
  add({ key, bytes, etag, ageMs }: BucketObject): void {
    if (this.#known.get(key) !== undefined || !this.#canHaveFolders(key)) return;
    try {
      const stamp = writeStub(join(this.#options.root, key), bytes);
      this.#known.set(key, { etag, bytes, ageMs, stamp, isStub: true });
    } catch (error) {
      // A key may be that of a folder of another key, too long, or too large for the file system.
      if (!OF_KEY.has(errnoOf(error))) throw error;
      this.#leaveOut(key);
    }
  }

  /** In a bucket, an object may have the name of a folder. It is left out if it is no file of a lake; otherwise those below it are. */
  #canHaveFolders(key: string): boolean {
    for (let end = key.indexOf('/'); end >= 0; end = key.indexOf('/', end + 1)) {
      const folder = key.slice(0, end);
      const isFile = this.#known.get(folder) !== undefined;
      if (isPartitionFile(posix.basename(folder)) || (isFile && posix.extname(folder) !== '')) {
        this.#leaveOut(key);
        return false;
      }
      if (isFile) this.#leaveOut(folder);
    }
    return true;
  }

  #leaveOut(key: string): void {
    const { root, bucket, warn } = this.#options;
    if (this.#known.get(key) !== undefined) rmSync(join(root, key), { force: true });
    this.#known.delete(key);
    if (!this.#hasWarned) warn(`${bucket.address}/${key} cannot be a file of a lake, and is left out`);
    this.#hasWarned = true;
  }
}
