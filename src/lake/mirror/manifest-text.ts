/** Manifests as text: the lines that two writers have added to one manifest, and the files that lines name. */
import { fieldsOf, parseJson } from '../../text/json.js';
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { unlessMissing } from '../../model/errors.js';
import { isPlainKey } from '../../model/lake-address.js';

/**
 * The manifest with the lines of both writers: those of the bucket first, unless both have written the same data. `common`: the number of bytes with which both begin. Undefined if
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

const linesOf = (lines: Buffer): string[] =>
  lines
    .toString()
    .split('\n')
    .filter((line) => line !== '');

/** `changed`: files that this writer has put or will remove, as lines name them. If false, one manifest can have the lines of both. */
function concernSameData(
  own: readonly string[],
  others: readonly string[],
  changed: ReadonlySet<string>,
): boolean {
  const ours = claimsOf(own, 'ours');
  const theirs = claimsOf(others, 'theirs');
  const isChanged = [...changed].map(fileClaim).some((claim) => theirs.has(claim) && !ours.has(claim));
  return isChanged || differ(ours, theirs) || differ(theirs, ours);
}

/**
 * The same text for lines of two writers about the same object in the same file. If the lines do not concern the same data otherwise, the last
 * digests of the file are equal.
 */
function subjectOf(line: string): string {
  const { kind, key, sha256, file, settings } = fieldsOf(parseJson(line));
  if (kind === 'object') return JSON.stringify([key, sha256, file, fieldsOf(settings)['format']]);
  // Other lines of the same content differ in their times only.
  return line.replace(/"at":"[^"]*"/, '');
}

const fileClaim = (file: unknown): string => `file ${String(file)}`;

/** What a writer says last about each object, file and period. Both may say the same, but both may not drop an object. */
function claimsOf(lines: readonly string[], writer: string): ReadonlyMap<string, string> {
  const claims = new Map<string, string>();
  for (const line of lines) {
    const { kind, key, file, fileSha256, period, settings } = fieldsOf(parseJson(line));
    if (typeof key !== 'string' || (kind !== 'object' && kind !== 'dropped')) continue;
    claims.set(`key ${key}`, kind === 'object' ? 'held' : `dropped by ${writer}`);
    if (typeof file !== 'string') continue;
    claims.set(fileClaim(file), String(fileSha256));
    claims.set(`period ${String(fieldsOf(settings)['format'])} ${String(period)}`, file);
  }
  return claims;
}

/** `2026-11-05` lies in `2026-11`. */
const DAY = /^(period \S+ \d+-\d\d)-\d\d$/;

function differ(some: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>): boolean {
  return [...some].some(([name, said]) =>
    [name, name.replace(DAY, '$1')].some((each) => (others.get(each) ?? said) !== said),
  );
}

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
export const withZip = (key: string): readonly string[] => [key, key.replace(/\.[^./]*$/, '')];
