/** Manifests as text: the folders of the zips that they name, and the union of two writers' lines. */
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { errnoOf } from '../model/errors.js';
import { isPlainKey } from '../model/lake-address.js';
import { parseJson } from '../text/json.js';
import { concernSameData, subjectOf } from './same-data.js';

/** The folders of the zips of a series, relative to the root of the lake. Empty without a manifest. */
export async function zipFolders(manifestPath: string): Promise<string[]> {
  const folders = new Set(
    (await filesOfLines(manifestPath, '"format":"zip"')).map((file) => posix.dirname(file)),
  );
  // The check of the manifest line reports any other path.
  return [...folders].filter((folder) => folder !== '.' && isPlainKey(folder));
}

/** The files that some commit of the manifest replaces, as its lines name them. */
export async function replacedFiles(manifestPath: string): Promise<ReadonlySet<string>> {
  return new Set(await filesOfLines(manifestPath, '"fileBefore"'));
}

/** The files of the lines that have a text. */
async function filesOfLines(manifestPath: string, part: string): Promise<string[]> {
  const text = await readText(manifestPath);
  const lines = text.includes(part) ? text.split('\n').filter((line) => line.includes(part)) : [];
  return lines.map((line) => unquoted(/"file":("(?:[^"\\]|\\.)*")/.exec(line)?.[1] ?? '""'));
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
  const text = parseJson(json);
  return typeof text === 'string' ? text : '';
}

/**
 * The manifest with the lines of both writers: those of the bucket first. `common`: the number of bytes with which both begin. Undefined if
 * they do not, because the manifest in the bucket was rewritten, and if both writers have written the same data. `changed`: the files that
 * this writer has put or will remove, as manifest lines name them.
 */
export function joinManifests(
  local: Buffer,
  remote: Buffer,
  common: number,
  changed: ReadonlySet<string> = new Set(),
): Buffer | undefined {
  if (remote.length < common || !local.subarray(0, common).equals(remote.subarray(0, common)))
    return undefined;
  const added = linesOf(remote.subarray(common));
  // The bucket may have some of our lines: the answer to a put may be lost.
  const isThere = new Set(added);
  const lines = linesOf(local.subarray(common)).filter((line) => !isThere.delete(line));
  const others = added.filter((line) => isThere.has(line));
  if (concernSameData(lines, others, changed)) return undefined;
  // Two workers may have done one job, one of them after its lease: their lines differ.
  const theirs = new Set(others.map(subjectOf));
  const own = lines.filter((line) => !theirs.has(subjectOf(line)));
  return Buffer.concat([remote, ...own.map((line) => Buffer.from(`${line}\n`))]);
}

function linesOf(lines: Buffer): string[] {
  return lines
    .toString()
    .split('\n')
    .filter((line) => line !== '');
}
