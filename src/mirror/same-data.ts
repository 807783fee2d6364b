/** Whether two writers of one series have written the same data: files, days or months of one file after the other, or the same objects. */
import { fieldsOf, parseJson } from '../text/json.js';

/**
 * `changed`: files that this writer has put or will remove, as manifest lines name them. The lines of both can stand in one manifest
 * if this is false.
 */
export function concernSameData(
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
export function subjectOf(line: string): string {
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
    const format = String(fieldsOf(settings)['format']);
    // A zip holds one object: a month and its days may stand beside each other.
    if (format !== 'zip') claims.set(`period ${format} ${String(period)}`, file);
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
