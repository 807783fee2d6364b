import { lstat } from 'node:fs/promises';

import { type BucketEntry, walkBucket } from './bucket-walk.js';
import { type DigestCache, etagOf, sizeOf } from './etags.js';
import type { ListingQuery } from './listing-query.js';
import { missingAsUndefined } from './object-store.js';

/** An object as a listing shows it. */
export interface ListedObject {
  readonly key: string;
  readonly lastModified: Date;
  /** Quoted. */
  readonly etag: string;
  readonly sizeBytes: number;
}

/** One page of a listing. */
export interface ListingPage {
  readonly objects: readonly ListedObject[];
  readonly commonPrefixes: readonly string[];
  /** The last entry of this page, when there are more. */
  readonly resumeAfter: string | undefined;
}

/** Files described at the same time, so that a first page does not wait for a thousand reads in a row. */
const CONCURRENCY = 16;

/** The page a query asks for; a folder that does not exist is an empty page. Rejects with file system errors. */
export async function readPage(
  root: string,
  query: ListingQuery,
  digests: DigestCache,
): Promise<ListingPage> {
  const { entries, resumeAfter } = await collect(root, query);
  const objects: ListedObject[] = [];
  for (let i = 0; i < entries.length; i += CONCURRENCY) {
    const described = entries.slice(i, i + CONCURRENCY).map((entry) => describe(entry, digests));
    for (const object of await Promise.all(described)) if (object !== undefined) objects.push(object);
  }
  const commonPrefixes = entries.filter((entry) => entry.kind === 'prefix').map((entry) => entry.key);
  return { objects, commonPrefixes, resumeAfter };
}

async function collect(
  root: string,
  { prefix, after, delimiter, maxKeys }: ListingQuery,
): Promise<{ entries: BucketEntry[]; resumeAfter: string | undefined }> {
  const entries: BucketEntry[] = [];
  for await (const entry of walkBucket(root, { prefix, after, folded: delimiter === '/' })) {
    if (entries.length === maxKeys) return { entries, resumeAfter: entries.at(-1)?.key };
    entries.push(entry);
  }
  return { entries, resumeAfter: undefined };
}

/** Undefined for a common prefix, and for a file that went away since its folder was read. */
async function describe(entry: BucketEntry, digests: DigestCache): Promise<ListedObject | undefined> {
  if (entry.kind === 'prefix') return undefined;
  const { key, path, virtual } = entry;
  return missingAsUndefined(async () => {
    const stats = await lstat(path, { bigint: true });
    const object = { path, stats, virtual };
    const etag = await etagOf(object, digests);
    return { key, lastModified: stats.mtime, etag, sizeBytes: sizeOf(object) };
  });
}
