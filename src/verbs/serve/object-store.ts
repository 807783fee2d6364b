/** Finds and opens the files of objects, inside `data/` only and never through symbolic links; their ETags, sidecars and sizes. */
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';
import { join, basename } from 'node:path';
import { errnoOf } from '../../model/errors.js';
import { createHash } from 'node:crypto';

/** Suffix of the file that holds an object's SHA-256. */
export const SIDECAR_SUFFIX = '.CHECKSUM';

/** Only files in this folder are objects. */
export const TOP_FOLDER = 'data';

/** The file of an object. `virtual`: the object is the sidecar of the file, and has no file itself. */
export interface StoredObject {
  readonly path: string;
  readonly stats: BigIntStats;
  readonly virtual: boolean;
}

/** True for a file or folder name that may be a part of a key. Hidden names and names with a separator may not. */
export const isKeyPart = (name: string): boolean =>
  name !== '' && !name.startsWith('.') && !/[\0\\/]/.test(name);

/** The path of a key (without trailing slash); undefined outside `data/`, and for a hidden or empty part. */
export function pathOfKey(root: string, key: string): string | undefined {
  const parts = key.split('/');
  if (parts[0] !== TOP_FOLDER || !parts.every(isKeyPart)) return undefined;
  return join(root, ...parts);
}

/** The object with this key, or undefined. `root` must be a real path without symbolic links. */
export async function findObject(root: string, key: string): Promise<StoredObject | undefined> {
  const path = pathOfKey(root, key);
  if (path === undefined || !key.includes('/')) return undefined;
  const stats = await regularFile(path);
  if (stats !== undefined) return { path, stats, virtual: false };
  const base = path.slice(0, -SIDECAR_SUFFIX.length);
  if (!path.endsWith(SIDECAR_SUFFIX) || !mayHaveSidecar(base)) return undefined;
  const baseStats = await regularFile(base);
  return baseStats === undefined ? undefined : { path: base, stats: baseStats, virtual: true };
}

/** True unless the file is a sidecar itself. */
export const mayHaveSidecar = (name: string): boolean => !name.endsWith(SIDECAR_SUFFIX);

/** Status of a regular file. Undefined without one, or when the path has a symbolic link, which could lead out of the root. */
async function regularFile(path: string): Promise<BigIntStats | undefined> {
  return missingAsUndefined(async () => {
    const stats = await lstat(path, { bigint: true });
    return stats.isFile() && (await realpath(path)) === path ? stats : undefined;
  });
}

/** Opens the file of an object. Rejects with ELOOP for a symbolic link in the path, which may be newer than the search for the object. */
export async function openObject({ path }: Pick<StoredObject, 'path'>): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    if ((await openedPath(file, path)) === path) return file;
    throw Object.assign(new Error(`${path} is reached by a symbolic link`), { code: 'ELOOP' });
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Path of the opened file. Linux gives it for the open file; on other systems the name is resolved again. */
async function openedPath(file: FileHandle, path: string): Promise<string | undefined> {
  if (process.platform === 'linux') return readlink(`/proc/self/fd/${file.fd}`);
  const [opened, named] = await Promise.all([file.stat({ bigint: true }), stat(path, { bigint: true })]);
  return opened.dev === named.dev && opened.ino === named.ino ? realpath(path) : undefined;
}

const MISSING = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP']);

/** Runs a file system call. Resolves with undefined when the file does not exist; rejects with other errors. */
export async function missingAsUndefined<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    const code = error instanceof Error ? errnoOf(error) : undefined;
    if (code !== undefined && MISSING.has(code)) return undefined;
    throw error;
  }
}

type Algorithm = 'md5' | 'sha256';

/** S3 clients upload larger files in parts; their ETag is not the MD5 of the content. */
const PART_BYTES = 8 * 1024 * 1024;
const READ_AT_ONCE_BYTES = 1024 * 1024;

/** Digests of files, each computed once per revision (size, modification time, inode). */
export class DigestCache {
  readonly #known = new Map<string, Promise<string>>();

  /** Hex digest of the file's content. Rejects with the file system's error. */
  digest(algorithm: Algorithm, { path, stats }: StoredObject): Promise<string> {
    const revision = [algorithm, path, stats.size, stats.mtimeNs, stats.ino].join(':');
    const digest = this.#known.get(revision) ?? digestOf(algorithm, path, stats.size);
    this.#known.set(revision, digest);
    digest.catch(() => this.#known.delete(revision));
    return digest;
  }
}

async function digestOf(algorithm: Algorithm, path: string, size: bigint): Promise<string> {
  const hash = createHash(algorithm);
  const file = await openObject({ path });
  try {
    if (size <= READ_AT_ONCE_BYTES) return hash.update(await file.readFile()).digest('hex');
    const chunks: AsyncIterable<Buffer> = file.createReadStream({ autoClose: false });
    for await (const chunk of chunks) hash.update(chunk);
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}

/**
 * Quoted ETag: the MD5 of the content, or for large files and their sidecars the form of a multipart upload
 * (`<32 hex>-<parts>`), made from size and time so that a listing of gigabyte files need not read them.
 */
export async function etagOf(stored: StoredObject, digests: DigestCache): Promise<string> {
  const { size, mtimeNs } = stored.stats;
  if (size > PART_BYTES) {
    const identity = `${stored.virtual ? 'sidecar' : 'object'}:${size}:${mtimeNs}`;
    const parts = stored.virtual ? 1 : Math.ceil(Number(size) / PART_BYTES);
    return `"${createHash('md5').update(identity).digest('hex')}-${parts}"`;
  }
  if (!stored.virtual) return `"${await digests.digest('md5', stored)}"`;
  const sidecar = createHash('md5').update(await sidecarText(stored, digests));
  return `"${sidecar.digest('hex')}"`;
}

/** Content of the sidecar of a file, in the text format of `sha256sum`. */
export const sidecarText = async (stored: StoredObject, digests: DigestCache): Promise<string> =>
  `${await digests.digest('sha256', stored)}  ${basename(stored.path)}\n`;

/** Bytes of the object's content; a sidecar's length is known without reading the file. */
export const sizeOf = (stored: StoredObject): number =>
  stored.virtual ? 64 + 2 + Buffer.byteLength(basename(stored.path)) + 1 : Number(stored.stats.size);
