import type { Dirent } from 'node:fs';
import { opendir, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';

import { compareKeys } from './key-order.js';
import {
  SIDECAR_SUFFIX,
  TOP_FOLDER,
  isKeyPart,
  mayHaveSidecar,
  missingAsUndefined,
  pathOfKey,
} from './object-store.js';

/** One line of a listing: an object (with the file it comes from) or a common prefix, ending in a slash. */
export type BucketEntry =
  | { readonly kind: 'object'; readonly key: string; readonly path: string; readonly virtual: boolean }
  | { readonly kind: 'prefix'; readonly key: string };

/** Which entries are wanted. */
interface Range {
  readonly prefix: string;
  /** Exclusive lower bound; it need not exist. */
  readonly after: string;
  /** Report folders as common prefixes instead of descending into them. */
  readonly folded: boolean;
}

/**
 * The entries of a range in byte order. Reads a folder only when it is reached, and none outside the range,
 * so that a page costs the same in a bucket of a thousand objects and of a million.
 */
export async function* walkBucket(root: string, range: Range): AsyncGenerator<BucketEntry> {
  const top = `${TOP_FOLDER}/`;
  const start = range.prefix.slice(0, range.prefix.lastIndexOf('/') + 1);
  const folder = pathOfKey(root, (start === '' ? top : start).slice(0, -1));
  if (folder === undefined) return;
  const real = await missingAsUndefined(() => realpath(folder));
  if (real !== folder) return;
  if (start === '') yield* walkChild(folder, { name: top, virtual: false }, '', range);
  else yield* walkFolder(folder, start, range);
}

/** A name in a folder; folders carry a slash, because that is how their keys sort. */
interface Child {
  readonly name: string;
  /** A sidecar that is not on disk. */
  readonly virtual: boolean;
}

async function* walkFolder(folder: string, keyPrefix: string, range: Range): AsyncGenerator<BucketEntry> {
  const entries = (await missingAsUndefined(() => readdir(folder, { withFileTypes: true }))) ?? [];
  const children = childrenOf(entries).filter((child) => isInRange(keyPrefix + child.name, range));
  children.sort((a, b) => compareKeys(a.name, b.name));
  for (const child of children) yield* walkChild(join(folder, child.name), child, keyPrefix, range);
}

async function* walkChild(
  path: string,
  child: Child,
  keyPrefix: string,
  range: Range,
): AsyncGenerator<BucketEntry> {
  const key = keyPrefix + child.name;
  if (!isInRange(key, range)) return;
  if (!key.endsWith('/')) {
    const source = child.virtual ? path.slice(0, -SIDECAR_SUFFIX.length) : path;
    yield { kind: 'object', key, path: source, virtual: child.virtual };
  } else if (!range.folded) {
    yield* walkFolder(path, key, range);
  } else if (await holdsObjects(path)) {
    yield { kind: 'prefix', key };
  }
}

function childrenOf(entries: readonly Dirent[]): Child[] {
  const usable = entries.filter((entry) => isKeyPart(entry.name));
  const files = new Set(usable.filter((entry) => entry.isFile()).map((entry) => entry.name));
  const children: Child[] = [];
  for (const { name } of usable.filter((entry) => entry.isDirectory())) {
    children.push({ name: `${name}/`, virtual: false });
  }
  for (const name of files) {
    children.push({ name, virtual: false });
    const sidecar = name + SIDECAR_SUFFIX;
    if (mayHaveSidecar(name) && !files.has(sidecar)) children.push({ name: sidecar, virtual: true });
  }
  return children;
}

/** For a folder's key: whether anything in it can be in range. */
function isInRange(key: string, { prefix, after, folded }: Range): boolean {
  if (!key.startsWith(prefix)) return false;
  if (compareKeys(key, after) > 0) return true;
  return !folded && key.endsWith('/') && after.startsWith(key);
}

/** A folder without objects is no common prefix. Looks only as far as the first object. */
async function holdsObjects(folder: string): Promise<boolean> {
  const directory = await missingAsUndefined(() => opendir(folder));
  if (directory === undefined) return false;
  for await (const entry of directory) {
    if (!isKeyPart(entry.name)) continue;
    if (entry.isFile()) return true;
    if (entry.isDirectory() && (await holdsObjects(join(folder, entry.name)))) return true;
  }
  return false;
}
