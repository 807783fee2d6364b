/** The files of a mirror: those that the bucket has, as stubs or with their bytes, and those that were changed here. */
import { randomUUID } from 'node:crypto';
import { renameSync, rmSync, closeSync, fstatSync, ftruncateSync, openSync } from 'node:fs';
import type { Dirent, Stats } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join, posix, relative, sep } from 'node:path';
import { makeFolder, makeFolderSync } from '../../files/disk.js';
import { FOLDERS } from '../layout.js';
import { manifestPlace } from '../manifest-place.js';
import { entryNow, isPartitionFile } from '../../files/path-checks.js';
import { CryptodlError, errnoOf, unlessMissing } from '../../model/errors.js';
import type { BucketObject } from '../s3/bucket-object.js';

export interface KnownFile {
  readonly etag: string;
  /** The size in the bucket. */
  readonly bytes: number;
  /** The stamp of the local file. A file with another stamp was changed here. */
  readonly stamp: string;
  /** A sparse file of the right size, which takes no blocks of the disk, stands in place of the bytes. */
  readonly isStub: boolean;
  /** The time since its last change in milliseconds, when the bucket was asked; undefined for a file that was put by this command. */
  readonly ageMs?: number | undefined;
}

/** Errors of the file system about the name or the size of a file. */
const OF_KEY: ReadonlySet<string> = new Set([
  'EEXIST',
  'EISDIR',
  'ENOTDIR',
  'ENAMETOOLONG',
  'EFBIG',
  'EINVAL',
]);

export class KnownFiles {
  readonly #folders = new Map<string, Map<string, KnownFile>>();
  /** Keys of files that were written here and are not published yet. */
  readonly #written = new Set<string>();
  /** Keys of files that were removed here on purpose. */
  readonly #removed = new Set<string>();

  /** `onLeftOut`: called with the key of an object that cannot be a file beside the other files of a lake. */
  constructor(
    private readonly root: string,
    private readonly onLeftOut: (key: string) => void,
  ) {}

  get(key: string): KnownFile | undefined {
    return this.#folders.get(posix.dirname(key))?.get(posix.basename(key));
  }

  set(key: string, file: KnownFile): void {
    const folder = posix.dirname(key);
    const files = this.#folders.get(folder) ?? new Map<string, KnownFile>();
    this.#folders.set(folder, files);
    files.set(posix.basename(key), file);
    this.#written.delete(key);
  }

  delete(key: string): void {
    this.#folders.get(posix.dirname(key))?.delete(posix.basename(key));
    this.#written.delete(key);
    this.#removed.delete(key);
  }

  wrote(key: string): void {
    this.#written.add(key);
    this.#removed.delete(key);
  }

  removes(key: string): void {
    this.#written.delete(key);
    this.#removed.add(key);
  }

  /** Throws `disk` if a file is missing that this command has not removed. */
  refuseLost(key: string): void {
    const isExpected = this.get(key) !== undefined || this.#written.has(key);
    // Runs that end remove the temporary files of others, whose names begin with a dot.
    const isTemporary = posix.basename(key).startsWith('.');
    if (!isExpected || this.#removed.has(key) || isTemporary || this.#has(key)) return;
    throw new CryptodlError(
      'disk',
      `another program has removed files of the mirror of the lake from ${dirname(this.root)}, for example ${key}`,
      {
        hint: 'choose another --temp-dir, in which no program cleans up, and run the command again; the bucket keeps these files',
      },
    );
  }

  #has(key: string): boolean {
    return entryNow(this.pathOf(key)) !== undefined;
  }

  keysIn(folder: string): string[] {
    return [...(this.#folders.get(folder)?.keys() ?? [])].map((name) => keyIn(folder, name));
  }

  /** The folders with files at or below this one. */
  foldersBelow(folder: string): string[] {
    return [...this.#folders.keys()].filter((each) => each === folder || each.startsWith(`${folder}/`));
  }

  keyOf(path: string): string {
    return relative(this.root, path).replaceAll(sep, '/');
  }

  pathOf(key: string): string {
    return join(this.root, key);
  }

  manifestOf(folder: string): string {
    return this.keyOf(manifestPlace(this.pathOf(folder)).path);
  }

  stagedPath(): string {
    return this.pathOf(`${FOLDERS.internal}/mirror/${randomUUID()}`);
  }

  /** Differs after each change of a file; undefined for a missing file and for anything but a regular file. */
  stampOf(key: string): string | undefined {
    return stampAt(this.pathOf(key));
  }

  /** Whether a file is here that the bucket does not have. */
  isChanged(key: string): boolean {
    const stamp = this.stampOf(key);
    return stamp !== undefined && stamp !== this.get(key)?.stamp;
  }

  /** Whether the file is as in the bucket: neither changed nor removed here. */
  isAsKnown(key: string): boolean {
    const known = this.get(key);
    return known !== undefined && this.stampOf(key) === known.stamp;
  }

  /** The keys of the changed files in these folders. `.`: the root. */
  async changedIn(folders: readonly string[]): Promise<string[]> {
    const changed: string[] = [];
    for (const folder of folders) {
      const entries = await entriesOf(this.pathOf(folder));
      const keys = entries.filter((entry) => entry.isFile()).map(({ name }) => keyIn(folder, name));
      changed.push(...keys.filter((key) => this.isChanged(key)));
    }
    return changed;
  }

  /** The keys of the files in these folders that the bucket has, and that were removed here. Throws `disk` for a lost file, of any folder if it is not published. */
  async goneIn(folders: readonly string[]): Promise<string[]> {
    const gone: string[] = [];
    for (const folder of folders) {
      const present = new Set((await entriesOf(this.pathOf(folder))).map(({ name }) => keyIn(folder, name)));
      // A stub that was made since is there.
      gone.push(...this.keysIn(folder).filter((key) => !present.has(key) && !this.#has(key)));
    }
    for (const key of [...gone, ...this.#written]) this.refuseLost(key);
    return gone;
  }

  /** The folder and all folders below it, in the bucket or in the mirror. */
  async allFoldersBelow(folder: string): Promise<string[]> {
    const found = new Set(this.foldersBelow(folder));
    const visit = async (each: string): Promise<void> => {
      found.add(each);
      for (const entry of await entriesOf(this.pathOf(each)))
        if (entry.isDirectory()) await visit(`${each}/${entry.name}`);
    };
    await visit(folder);
    return [...found];
  }

  /** Makes the stub of an object. Does nothing for a known one. */
  addStub({ key, bytes, etag, ageMs }: BucketObject): void {
    if (this.get(key) !== undefined || !this.#canHaveFolders(key)) return;
    try {
      const stamp = writeStub(this.pathOf(key), bytes);
      this.set(key, { etag, bytes, ageMs, stamp, isStub: true });
      this.#removed.delete(key);
    } catch (error) {
      // A key may be that of a folder of another key, too long, or too large for the file system.
      if (!OF_KEY.has(errnoOf(error))) throw error;
      this.#leaveOut(key);
    }
  }

  /** Replaces the bytes of a file by a stub, unless the file was changed since it was published. */
  toStub(key: string): void {
    const known = this.get(key);
    if (known === undefined || known.isStub || !this.isAsKnown(key)) return;
    // A new file, because the present one may be open.
    const staged = this.stagedPath();
    const stamp = writeStub(staged, known.bytes);
    // At once, because a stub with the stamp of another file would be published.
    renameSync(staged, this.pathOf(key));
    this.set(key, { ...known, stamp, isStub: true });
  }

  async place(
    staged: string,
    key: string,
    { etag, bytes, ageMs }: Pick<KnownFile, 'etag' | 'bytes' | 'ageMs'>,
  ): Promise<void> {
    const path = this.pathOf(key);
    await makeFolder(dirname(path));
    const stamp = stampAt(staged) ?? '';
    renameSync(staged, path);
    this.set(key, { etag, bytes, ageMs, stamp, isStub: false });
  }

  /** In a bucket, an object may have the name of a folder. It is left out if it is no file of a lake; otherwise those below it are. */
  #canHaveFolders(key: string): boolean {
    for (let end = key.indexOf('/'); end >= 0; end = key.indexOf('/', end + 1)) {
      const folder = key.slice(0, end);
      const isFile = this.get(folder) !== undefined;
      if (isPartitionFile(posix.basename(folder)) || (isFile && posix.extname(folder) !== '')) {
        this.#leaveOut(key);
        return false;
      }
      if (isFile) this.#leaveOut(folder);
    }
    return true;
  }

  #leaveOut(key: string): void {
    if (this.get(key) !== undefined) rmSync(this.pathOf(key), { force: true });
    this.delete(key);
    this.onLeftOut(key);
  }
}

const keyIn = (folder: string, name: string): string => (folder === '.' ? name : `${folder}/${name}`);

const entriesOf = async (path: string): Promise<Dirent[]> =>
  (await unlessMissing(readdir(path, { withFileTypes: true }), 'ENOTDIR')) ?? [];

function stampAt(path: string): string | undefined {
  const entry = entryNow(path);
  return entry?.isFile() === true ? stampIn(entry) : undefined;
}

const stampIn = ({ ino, size, mtimeMs }: Stats): string => `${ino}:${size}:${mtimeMs}`;

/** Creates a stub, and its folder if it is missing. Returns its stamp. Throws the error of the system, also if the path exists. */
function writeStub(path: string, bytes: number): string {
  const fd = openNew(path);
  try {
    ftruncateSync(fd, bytes);
    return stampIn(fstatSync(fd));
  } finally {
    closeSync(fd);
  }
}

function openNew(path: string): number {
  try {
    return openSync(path, 'wx');
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
    makeFolderSync(dirname(path));
    return openSync(path, 'wx');
  }
}
