/** Manifests as text: the folders of the zips that they name, and the union of two writers' lines. */
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { unlessMissing } from '../../model/errors.js';
import { isPlainKey } from '../../model/lake-address.js';
import { fieldsOf, parseJson } from '../../text/json.js';

/** The folders of the zips of a series, relative to the root of the lake. Empty without a manifest. */
export async function zipFolders(manifestPath: string): Promise<string[]> {
  const folders = new Set(
    (await filesOfLines(manifestPath, '"format":"zip"')).map((file) => posix.dirname(file)),
  );
  // The check of the manifest line reports any other path.
  return [...folders].filter((folder) => folder !== '.' && isPlainKey(folder));
}

/** The files of the lines after the first `bytes` that have a text, as the lines name them. Empty without a manifest. */
export async function filesOfLines(manifestPath: string, part: string, bytes = 0): Promise<string[]> {
  const content = await unlessMissing(readFile(manifestPath), 'ENOTDIR', 'EISDIR');
  const text = content?.toString('utf8', bytes) ?? '';
  const lines = text.includes(part) ? text.split('\n').filter((line) => line.includes(part)) : [];
  return lines.flatMap((line) => {
    const { file } = fieldsOf(parseJson(line));
    return typeof file === 'string' ? [file] : [];
  });
}

/** Lines name zips by their keys, and the files in the folder of the series by their names. */
export function nameInLines(key: string, seriesFolder: string): string {
  return posix.dirname(key) === seriesFolder ? posix.basename(key) : key;
}

/** The file, and the zip of which it may be the sidecar: `a.zip.CHECKSUM` goes with `a.zip`. */
export function withZip(key: string): readonly string[] {
  return [key, key.replace(/\.[^./]*$/, '')];
}
