/**
 * Commits that did not happen. A commit that replaces a file writes its manifest lines before it renames the new file, so a run that is killed in
 * between leaves lines whose file is still the one before. Such lines do not count; the rows that were committed before stay readable.
 */
import { join } from 'node:path';
import { unlessMissing } from '../model/errors.js';
import { FORMATS, type Format } from '../model/task.js';
import { manifestPlace } from './manifest-place.js';
import type { HeldObjects } from './held-objects.js';
import type { ManifestLine, ObjectLine } from '../model/manifest-line.js';
import { fileFacts, fileSize } from '../files/publish.js';

/** The committed files that the commit of these lines replaces, with their sizes. */
export function filesBefore(lines: readonly ManifestLine[]): ReadonlyMap<string, number> {
  return new Map(
    lines.flatMap((line) =>
      line.kind === 'object' && line.fileBefore !== undefined
        ? [[line.file, line.fileBefore.bytes] as const]
        : [],
    ),
  );
}

/** Names the commit of a line among those of its series. A later commit may write the same bytes again. */
export function commitOf({ file, fileSha256, at }: ObjectLine): string {
  return `${at} ${fileSha256} ${file}`;
}

export function isOneOf(commits: ReadonlySet<string>, line: ManifestLine): boolean {
  return commits.size > 0 && line.kind === 'object' && commits.has(commitOf(line));
}

/** Whether a manifest may have lines of commits that did not happen: the file before is still there, or a commit replaces another file than the last one. */
export async function mayHaveUndone(
  seriesFolder: string,
  manifest: Readonly<Record<Format, HeldObjects>>,
): Promise<boolean> {
  for (const format of FORMATS) {
    if (manifest[format].undone.size > 0) return true;
    for (const line of manifest[format].replacing()) if (await hasFileBefore(seriesFolder, line)) return true;
  }
  return false;
}

async function hasFileBefore(seriesFolder: string, line: ObjectLine): Promise<boolean> {
  const { fileBytes, fileSha256, fileBefore } = line;
  const path = pathOf(seriesFolder, line);
  if (fileBefore === undefined || (await fileSize(path)) !== fileBefore.bytes) return false;
  // Only their digests tell two files of the same size apart.
  if (fileBefore.bytes !== fileBytes) return true;
  return fileBefore.sha256 !== fileSha256 && (await digestOf(path)) === fileBefore.sha256;
}

/** The line of a held object for another append, with the current facts of its file. */
export function repeatLine(held: HeldObjects, before: ObjectLine): ObjectLine {
  const { replaces: _, ...line } = before;
  const { fileBytes, fileSha256, fileRows } = held.lastOfFile(line.file) ?? line;
  // The file stays: a commit of another file in between did not happen.
  const fileBefore = { bytes: fileBytes, sha256: fileSha256 };
  return { ...line, fileBytes, fileSha256, ...(fileRows === undefined ? {} : { fileRows }), fileBefore };
}

/** The first lines of a commit that removes files: without the files, only these lines tell which of their commits have happened. */
export function linesOfRemoved(held: HeldObjects, files: Iterable<string>, at: string): ObjectLine[] {
  return [...files].flatMap((file) => {
    const [line] = held.undone.has(file) ? held.inFile(file) : [];
    return line === undefined ? [] : [{ ...repeatLine(held, line), at }];
  });
}

export function pathOf(seriesFolder: string, { file, settings }: ObjectLine): string {
  return join(settings.format === 'zip' ? manifestPlace(seriesFolder).root : seriesFolder, file);
}

export async function digestOf(path: string): Promise<string | undefined> {
  return (await unlessMissing(fileFacts(path)))?.sha256;
}
