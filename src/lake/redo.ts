/**
 * Commits that take files away as well: what is to be done is written down first, so that a crash in the middle is
 * finished by the next run. Doing it twice does no harm.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../errors.js';
import { journalOf, JournalRefused, readJournal } from './journal.js';
import type { Redo } from './journal.js';
import type { LakePaths, VenueFolders } from './layout.js';
import { appendManifest } from './manifest.js';
import { fileSize, publish, publishAll, removeStaged, syncAll, syncDirectory } from './publish.js';
import type { Publication } from './publish.js';

/** The staged files are gone afterwards, unless the next run must finish with them what this one began. */
export async function commitWithRedo(paths: LakePaths, redo: Redo): Promise<void> {
  const journal = join(paths.own, `commit-${randomUUID()}.json`);
  try {
    await syncAll(redo.publications);
    await syncDirectory(paths.staging);
    await writeFile(`${journal}.partial`, JSON.stringify(await journalOf(paths, redo)));
    await publish(`${journal}.partial`, journal);
  } catch (error) {
    // The journal first: one that is found counts, and needs what it names.
    for (const path of [journal, `${journal}.partial`]) await rm(path, { force: true });
    await removeStaged(redo.publications);
    throw error;
  }
  await apply(redo);
  await rm(journal);
}

/** A journal that was not applied. */
export interface RefusedCommit {
  /** Its name in `.cryptodl`. */
  readonly name: string;
  readonly why: string;
  /** The folder that it is kept in, with everything that was staged. */
  readonly kept: string;
}

/** A journal, and one that was not written to its end. */
const JOURNAL = /^commit-[\w-]+\.json(\.partial)?$/;

/**
 * Finishes what a killed run had begun to commit in this lake. Of any other journal nothing is applied, and nothing that it
 * may need is removed.
 */
export async function finishCommits(paths: LakePaths, venue: VenueFolders): Promise<RefusedCommit[]> {
  const refused = new Map<string, string>();
  for (const entry of await readdir(paths.own, { withFileTypes: true })) {
    const { name } = entry;
    if (entry.isDirectory() || !JOURNAL.test(name)) continue;
    const journal = join(paths.own, name);
    try {
      if (name.endsWith('.json')) await apply(await readJournal(paths, venue, journal));
      await rm(journal);
    } catch (error) {
      if (!(error instanceof JournalRefused)) throw error;
      refused.set(name, error.message);
    }
  }
  return refused.size === 0 ? [] : keepRefused(paths, refused);
}

async function keepRefused(
  { own, staging }: LakePaths,
  refused: ReadonlyMap<string, string>,
): Promise<RefusedCommit[]> {
  const kept = join(own, `set-aside-${randomUUID()}`);
  await mkdir(kept);
  // The staged files first: a journal that is still in its place is found again.
  await rename(staging, join(kept, 'tmp')).catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw error;
  });
  for (const name of refused.keys()) await rename(join(own, name), join(kept, name));
  return [...refused].map(([name, why]) => ({ name, why, kept }));
}

async function apply(redo: Redo): Promise<void> {
  await mkdir(redo.seriesFolder, { recursive: true });
  const staged = await existing(redo.publications);
  // A dead file may have the name of a new one that is there already.
  const published = new Set(
    redo.publications.filter((publication) => !staged.includes(publication)).map(({ target }) => target),
  );
  for (const file of redo.dead) if (!published.has(file)) await rm(file, { force: true });
  await publishAll(staged);
  await appendManifest(redo.seriesFolder, redo.lines);
}

async function existing(publications: readonly Publication[]): Promise<Publication[]> {
  const sizes = await Promise.all(publications.map(({ staged }) => fileSize(staged)));
  return publications.filter((_, index) => sizes[index] !== undefined);
}
