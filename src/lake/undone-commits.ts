/**
 * Commits that did not happen. A commit that replaces a file writes its manifest lines before it renames the new file, so a run that is killed in
 * between leaves lines whose file is still the one before. Such lines do not count; the rows that were committed before stay readable.
 */
import { join } from 'node:path';
import { unlessMissing } from '../model/errors.js';
import { FORMATS, type Format } from '../model/task.js';
import { manifestPlace } from './manifest-place.js';
import type { HeldObjects } from './held-objects.js';
import type { DroppedLine, ManifestLine, ObjectLine } from '../model/manifest-line.js';
import { fileFacts, fileSize } from '../files/file-facts.js';

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
const commitOf = ({ file, fileSha256, at }: ObjectLine): string => `${at} ${fileSha256} ${file}`;

/** Whether the commit of a line is one of these. */
export const isOneOf = (commits: ReadonlySet<string>, line: ManifestLine): boolean =>
  commits.size > 0 && line.kind === 'object' && commits.has(commitOf(line));

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

export function droppedLine({ key }: ObjectLine, format: Format, at: string): DroppedLine {
  return { v: 1, kind: 'dropped', key, format, at };
}

const pathOf = (seriesFolder: string, { file, settings }: ObjectLine): string =>
  join(settings.format === 'zip' ? manifestPlace(seriesFolder).root : seriesFolder, file);

async function digestOf(path: string): Promise<string | undefined> {
  return (await unlessMissing(fileFacts(path)))?.sha256;
}

/** The commits of each file of a series, in the order of the manifest. */
export class FileCommits {
  /** A line of each commit. */
  readonly #byFile = new Map<string, ObjectLine[]>();

  add(line: ManifestLine): void {
    if (line.kind !== 'object') return;
    const commits = this.#byFile.get(line.file) ?? [];
    this.#byFile.set(line.file, commits);
    const last = commits.at(-1);
    if (last === undefined || commitOf(last) !== commitOf(line)) commits.push(line);
  }

  /** The commits that are neither that of the file which is there, nor lead to it. */
  async undone(seriesFolder: string): Promise<ReadonlySet<string>> {
    const undone = new Set<string>();
    for (const commits of this.#byFile.values()) {
      if (commits.every(({ fileBefore }) => fileBefore === undefined)) continue;
      const done = commitsUpTo(await presentCommit(seriesFolder, commits), commits);
      for (const commit of commits.map(commitOf)) if (!done.has(commit)) undone.add(commit);
    }
    return undone;
  }
}

/** The index of the last commit whose file is there; of the last commit, if the file is missing or another one. */
async function presentCommit(seriesFolder: string, commits: readonly ObjectLine[]): Promise<number> {
  const [first] = commits;
  const path = first === undefined ? '' : pathOf(seriesFolder, first);
  const size = await fileSize(path);
  const ofSize = commits.filter(({ fileBytes }) => fileBytes === size);
  const digests = new Set(ofSize.map(({ fileSha256 }) => fileSha256));
  const [digest] = digests.size > 1 ? [await digestOf(path)] : digests;
  const found = commits.findLastIndex(
    ({ fileBytes, fileSha256 }) => fileBytes === size && fileSha256 === digest,
  );
  return found < 0 ? commits.length - 1 : found;
}

/** A commit with those before it, by the files that they replace. */
function commitsUpTo(index: number, commits: readonly ObjectLine[]): ReadonlySet<string> {
  const done = new Set<string>();
  for (let at = index; at >= 0;) {
    const commit = commits[at];
    if (commit === undefined) break;
    done.add(commitOf(commit));
    const { fileBefore } = commit;
    const earlier = commits.slice(0, at);
    // The last commit before the first file of a name is that of a file that is gone.
    const before = earlier.findLastIndex(({ fileSha256 }) => fileSha256 === fileBefore?.sha256);
    at = fileBefore === undefined ? at - 1 : before;
  }
  return done;
}
