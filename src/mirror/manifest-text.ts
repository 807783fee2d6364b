/** Manifests as text: the folders of the zips that they name, and the union of two writers' lines. */
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { errnoOf } from '../model/errors.js';
import { isPlainKey } from '../s3/address.js';

/** The folders of the zips of a series, relative to the root of the lake. Empty without a manifest. */
export async function zipFolders(manifestPath: string): Promise<string[]> {
  const text = await readText(manifestPath);
  if (!text.includes('"format":"zip"')) return [];
  const folders = new Set<string>();
  for (const line of text.split('\n')) {
    const [, name] = line.includes('"format":"zip"') ? (/"file":("(?:[^"\\]|\\.)*")/.exec(line) ?? []) : [];
    const folder = name === undefined ? undefined : posix.dirname(unquoted(name));
    // The check of the manifest line reports any other path.
    if (folder !== undefined && folder !== '.' && isPlainKey(folder)) folders.add(folder);
  }
  return [...folders];
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errnoOf(error))) return '';
    throw error;
  }
}

function unquoted(json: string): string {
  try {
    return String(JSON.parse(json));
  } catch {
    return '';
  }
}

/**
 * The manifest with the lines of both writers. `base`: the number of bytes that both began with. Undefined if the manifest in the bucket
 * does not continue these bytes: it was rewritten.
 */
export function joinManifests(local: Buffer, remote: Buffer, base: number): Buffer | undefined {
  if (remote.length < base || !local.subarray(0, base).equals(remote.subarray(0, base))) return undefined;
  // The answer to an earlier request was lost: the bucket has our lines already.
  if (remote.subarray(0, local.length).equals(local)) return remote;
  return Buffer.concat([remote, local.subarray(base)]);
}
