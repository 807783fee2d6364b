/** Digests of objects: their ETags, and their sidecars. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { openObject, type StoredObject } from './object-store.js';

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
export async function sidecarText(stored: StoredObject, digests: DigestCache): Promise<string> {
  return `${await digests.digest('sha256', stored)}  ${basename(stored.path)}\n`;
}

/** Bytes of the object's content; a sidecar's length is known without reading the file. */
export function sizeOf(stored: StoredObject): number {
  return stored.virtual ? 64 + 2 + Buffer.byteLength(basename(stored.path)) + 1 : Number(stored.stats.size);
}
