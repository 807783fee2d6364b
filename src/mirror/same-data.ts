/** Whether two writers of one series have written the same data: files, days or months of one file after the other, or the same objects. */
import { fieldsOf, parseJson } from '../text/json.js';

interface Line {
  readonly kind?: unknown;
  readonly key?: unknown;
  readonly sha256?: unknown;
  readonly period?: unknown;
  readonly file?: unknown;
  readonly fileSha256?: unknown;
  readonly settings?: { readonly format?: unknown };
}

/**
 * `changed`: files that this writer has put or will remove, as manifest lines name them. The lines of both can stand in one manifest
 * if this is false.
 */
export function concernSameData(
  own: readonly string[],
  others: readonly string[],
  changed: ReadonlySet<string>,
): boolean {
  const ours = factsOf(own);
  const theirs = factsOf(others);
  for (const [file, digest] of theirs.digests)
    if ((changed.has(file) || ours.digests.has(file)) && ours.digests.get(file) !== digest) return true;
  for (const [key, isDropped] of theirs.keys)
    if (ours.keys.has(key) && (isDropped || ours.keys.get(key) === true)) return true;
  return (
    isCrossing(ours.fileOfPeriod, theirs.fileOfPeriod) || isCrossing(theirs.fileOfPeriod, ours.fileOfPeriod)
  );
}

/**
 * The same text for lines of two writers about the same object in the same file. If the lines do not concern the same data otherwise, the last
 * digests of the file are equal.
 */
export function subjectOf(line: string): string {
  const { kind, key, sha256, file, settings } = parsed(line);
  if (kind === 'object') return JSON.stringify([key, sha256, file, settings?.format]);
  // Other lines of the same content differ in their times only.
  return line.replace(/"at":"[^"]*"/, '');
}

interface Facts {
  /** The digest of each file at its last line. */
  readonly digests: Map<string, unknown>;
  /** By key: whether the last line of the object drops it. */
  readonly keys: Map<string, boolean>;
  /** By format and period. */
  readonly fileOfPeriod: Map<string, string>;
}

function factsOf(lines: readonly string[]): Facts {
  const facts: Facts = { digests: new Map(), keys: new Map(), fileOfPeriod: new Map() };
  for (const { kind, key, file, fileSha256, period, settings } of lines.map(parsed)) {
    if (typeof key !== 'string' || (kind !== 'object' && kind !== 'dropped')) continue;
    facts.keys.set(key, kind === 'dropped');
    if (typeof file !== 'string') continue;
    facts.digests.set(file, fileSha256);
    // A zip holds one object: a month and its days may stand beside each other.
    if (settings?.format !== 'zip')
      facts.fileOfPeriod.set(`${String(settings?.format)} ${String(period)}`, file);
  }
  return facts;
}

/** Whether the files of both hold the same day: `2026-11-05` lies in `2026-11`. */
function isCrossing(some: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>): boolean {
  return [...some].some(([period, file]) => {
    const month = /^.*-\d\d(?=-\d\d$)/.exec(period)?.[0] ?? period;
    return [period, month].some((each) => (others.get(each) ?? file) !== file);
  });
}

function parsed(line: string): Line {
  return fieldsOf(parseJson(line));
}
