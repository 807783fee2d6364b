/** Completes the commits of a killed run. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { unlessMissing } from '../model/errors.js';
import { completeLinesOf } from './complete-lines.js';
import type { LakePaths } from './layout.js';
import type { ManifestLine, ObjectLine } from '../model/manifest-line.js';
import { openManifest } from './manifest-place.js';
import { appendManifest } from './manifests.js';
import { fileFacts, fileSize, removeFile } from '../files/publish.js';
import { apply, JournalRefused, readJournal } from './commit-files.js';
import type { FileCommit, JournalExchange } from './commit-files.js';

interface RefusedCommit {
  /** Its name in `.cryptodl`. */
  readonly name: string;
  readonly why: string;
  /** The folder to which it was moved, with all staged files. */
  readonly kept: string;
}

const JOURNAL = /^commit-[\w-]+\.json(\.partial)?$/;

/**
 * Completes the commits of a killed run in this lake. Rejected journals are not applied: they are moved to one new folder
 * together with all staged files, and returned.
 */
export async function finishCommits(paths: LakePaths, exchange: JournalExchange): Promise<RefusedCommit[]> {
  const refused = new Map<string, string>();
  for (const entry of await readdir(paths.internal, { withFileTypes: true })) {
    const { name } = entry;
    if (entry.isDirectory() || !JOURNAL.test(name)) continue;
    const journal = join(paths.internal, name);
    try {
      if (name.endsWith('.json')) {
        const commit = await readJournal(paths, exchange, journal);
        await checkNewFiles(commit);
        const lines = await missingLines(commit);
        await apply({ ...commit, lines }, { append: appendManifest });
      }
      await removeFile(journal);
    } catch (error) {
      if (!(error instanceof JournalRefused)) throw error;
      refused.set(name, error.message);
    }
  }
  return refused.size === 0 ? [] : moveJournals(paths, refused);
}

/** The superseded files may go only if each new file is sound, staged or in its place. */
async function checkNewFiles({ publications, lines }: FileCommit): Promise<void> {
  const objects = new Map(lines.flatMap((line) => (line.kind === 'object' ? [[line.file, line]] : [])));
  for (const { staged, target } of publications) {
    const name = basename(target);
    const line = objects.get(name);
    if (line === undefined || !((await isFileOf(line, staged)) || (await isFileOf(line, target))))
      throw new JournalRefused(`its new file ${name} is missing or damaged`);
  }
}

const isFileOf = async ({ fileBytes, fileSha256 }: ObjectLine, path: string): Promise<boolean> =>
  (await fileSize(path)) === fileBytes && (await fileFacts(path)).sha256 === fileSha256;

/** A run that was killed during or after its append has left some or all of the lines. */
async function missingLines({ seriesFolder, lines }: FileCommit): Promise<ManifestLine[]> {
  const missing = new Map(lines.map((line) => [JSON.stringify(line), line]));
  const opened = await openManifest(seriesFolder);
  if (opened !== undefined)
    for await (const texts of completeLinesOf(opened.file, opened.path))
      for (const text of texts) missing.delete(text);
  return [...missing.values()];
}

async function moveJournals(
  { internal, staging }: LakePaths,
  refused: ReadonlyMap<string, string>,
): Promise<RefusedCommit[]> {
  const kept = join(internal, `set-aside-${randomUUID()}`);
  await mkdir(kept);
  // The staged files are moved first: a journal that is still in place is found again after a crash.
  await unlessMissing(rename(staging, join(kept, 'tmp')));
  for (const name of refused.keys()) await rename(join(internal, name), join(kept, name));
  return [...refused].map(([name, why]) => ({ name, why, kept }));
}
