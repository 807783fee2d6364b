/**
 * Commits that did not happen. A commit that replaces a file writes its manifest lines before it renames the new file, so a run that is killed in
 * between leaves lines whose file is still the one before. Such lines do not count; the rows that were committed before stay readable.
 */
import { join } from 'node:path';
import { errnoOf } from '../model/errors.js';
import { FORMATS } from '../model/task.js';
import type { Format } from '../model/task.js';
import { manifestPlace } from './manifest-place.js';
import type { HeldObjects } from './held-objects.js';
import { PlainLine } from './manifest-line.js';
import type { ManifestLine, ObjectLine } from './manifest-line.js';
import { fileFacts, fileSize } from './publish.js';

/** The committed files that the commit of these lines replaces. */
export function replacedFiles(lines: readonly ManifestLine[]): ReadonlySet<string> {
  return new Set(
    lines.flatMap((line) => (line.kind === 'object' && line.fileBefore !== undefined ? [line.file] : [])),
  );
}

/** Names the commit of a line among those of its series. A later commit may write the same bytes again. */
function commitOf({ file, fileSha256, at }: ObjectLine): string {
  return `${at} ${fileSha256} ${file}`;
}

/** The full line of an object. */
function objectOf(line: ManifestLine | PlainLine): ObjectLine | undefined {
  if (line.kind !== 'object') return undefined;
  return line instanceof PlainLine ? line.line : line;
}

export class UndoneCommits {
  readonly #undone = new Set<string>();
  /** By file with its digest: the last line of the last commit that replaces it. */
  readonly #replacing = new Map<string, ObjectLine>();

  /** Whether the line counts. */
  isDone(line: ManifestLine | PlainLine): boolean {
    const object = this.#undone.size === 0 ? undefined : objectOf(line);
    return object === undefined || !this.#undone.has(commitOf(object));
  }

  /** Compares the last commits of a series with its files. Resolves with true if the manifest must be read again without some commits. */
  async compare(seriesFolder: string, manifest: Readonly<Record<Format, HeldObjects>>): Promise<boolean> {
    for (const format of FORMATS) {
      const folder = format === 'zip' ? manifestPlace(seriesFolder).root : seriesFolder;
      for (const line of manifest[format].replacing())
        if (await hasFileBefore(folder, line)) this.#undone.add(commitOf(line));
    }
    return this.#undone.size > 0 || FORMATS.some((format) => manifest[format].hasFork);
  }

  /** Call for each line in order. A file is replaced once, so of two commits that replace it, the earlier one did not happen. */
  follow(held: ManifestLine | PlainLine): void {
    const line = objectOf(held);
    if (line?.fileBefore === undefined) return;
    const replaced = `${line.fileBefore.sha256} ${line.file}`;
    const earlier = this.#replacing.get(replaced);
    if (earlier !== undefined && earlier.at !== line.at) this.#undone.add(commitOf(earlier));
    // A file that is written again with the same bytes is still there.
    if (line.fileBefore.sha256 === line.fileSha256) this.#replacing.delete(replaced);
    else this.#replacing.set(replaced, line);
  }
}

/** Whether the file that the commit of the line replaces is as it was before it. */
async function hasFileBefore(
  folder: string,
  { file, fileBytes, fileSha256, fileBefore }: ObjectLine,
): Promise<boolean> {
  const path = join(folder, file);
  if (fileBefore === undefined || (await fileSize(path)) !== fileBefore.bytes) return false;
  // Only their digests tell two files of the same size apart.
  if (fileBefore.bytes !== fileBytes) return true;
  if (fileBefore.sha256 === fileSha256) return false;
  try {
    return (await fileFacts(path)).sha256 === fileBefore.sha256;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}
