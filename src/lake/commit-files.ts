/**
 * Commits of staged files, in an order in which every row that was committed stays readable: new files, manifest lines, files that replace others
 * of the same name (`undone-commits.ts`), removals. A commit that also removes files writes a journal first, so that the next run completes
 * it after a crash. Applying a journal twice has the same effect as applying it once.
 */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { LakePaths } from './layout.js';
import type { Manifests } from './manifests.js';
import { filesBefore } from './undone-commits.js';
import { publish, removeFile, removeStaged, renameAll, syncAll, syncDirectory } from '../files/publish.js';
import { fileSize } from '../files/file-facts.js';
import type { Publication } from '../files/publish.js';
import { buildJournal, type FileCommit } from './commit-journal.js';

interface CommitContext {
  readonly paths: LakePaths;
  readonly manifests: Pick<Manifests, 'append'>;
}

/**
 * Syncs the staged files, gives them their names, appends the lines and removes the superseded files. No staged file is left, unless a
 * journal needs it for the next run. Rejects with the error of the disk.
 */
export async function commitFiles(context: CommitContext, commit: FileCommit): Promise<void> {
  if (commit.dead.length > 0) return commitWithJournal(context, commit);
  try {
    await syncAll(commit.publications);
    await apply(commit, context.manifests);
  } finally {
    await removeStaged(commit.publications);
  }
}

/**
 * Writes the journal, applies it and removes it. If writing fails, the staged files are removed. If applying fails, the journal
 * and the staged files stay for the next run.
 */
async function commitWithJournal({ paths, manifests }: CommitContext, commit: FileCommit): Promise<void> {
  const journal = join(paths.internal, `commit-${randomUUID()}.json`);
  try {
    await syncAll(commit.publications);
    await syncDirectory(paths.staging);
    await writeFile(`${journal}.partial`, JSON.stringify(await buildJournal(paths, commit)));
    await publish(`${journal}.partial`, journal);
  } catch (error) {
    // The journal is removed first, because the next run applies any journal and needs its staged files.
    for (const path of [journal, `${journal}.partial`]) await removeFile(path);
    await removeStaged(commit.publications);
    throw error;
  }
  await apply(commit, manifests);
  await removeFile(journal);
}

/**
 * No line names a file that was never there, and no file is replaced before its lines tell it. The superseded files are removed last: until then,
 * readers of the manifest need them.
 */
export async function apply(
  { seriesFolder, publications, dead, lines }: FileCommit,
  manifests: Pick<Manifests, 'append'>,
): Promise<void> {
  const before = filesBefore(lines);
  const first: Publication[] = [];
  const afterLines: Publication[] = [];
  for (const each of publications) {
    const size = await fileSize(each.target);
    // A killed run has given the file its name.
    if (size !== undefined && (await fileSize(each.staged)) === undefined) continue;
    // A missing or damaged file hides no rows when it is replaced.
    const isReplaced = size !== undefined && size === before.get(basename(each.target));
    (isReplaced ? afterLines : first).push(each);
  }
  await renameAll(first);
  await manifests.append(seriesFolder, lines, async () => {
    await renameAll(afterLines);
    const published = new Set(publications.map(({ target }) => target));
    for (const file of dead) if (!published.has(file)) await removeFile(file);
    if (dead.length > 0) await syncDirectory(seriesFolder);
  });
}
