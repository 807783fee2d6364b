/**
 * Commits that take files away as well: what is to be done is written down first, so that a crash in the middle is
 * finished by the next run. Doing it twice does no harm.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../errors.js';
import type { LakePaths } from './layout.js';
import { appendManifest } from './manifest.js';
import type { ManifestLine } from './manifest.js';
import { publish, publishAll, removeStaged, syncAll, syncDirectory } from './publish.js';
import type { Publication } from './publish.js';

export interface Redo {
  readonly seriesFolder: string;
  readonly publications: readonly Publication[];
  /** Superseded files, which go before the new ones appear: at no moment are rows seen twice. */
  readonly dead: readonly string[];
  readonly lines: readonly ManifestLine[];
}

const PREFIX = 'commit-';

/** The staged files are gone afterwards, unless the next run must finish with them what this one began. */
export async function commitWithRedo(paths: LakePaths, redo: Redo): Promise<void> {
  const journal = join(paths.own, `${PREFIX}${randomUUID()}.json`);
  try {
    await syncAll(redo.publications);
    await syncDirectory(paths.staging);
    await writeFile(`${journal}.partial`, JSON.stringify(redo));
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

/** Finishes what a killed run had begun to commit. */
export async function finishCommits(paths: LakePaths): Promise<void> {
  const names = await readdir(paths.own);
  for (const name of names.filter((candidate) => candidate.startsWith(PREFIX))) {
    const journal = join(paths.own, name);
    if (name.endsWith('.json')) await apply(JSON.parse(await readFile(journal, 'utf8')) as Redo);
    await rm(journal);
  }
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
  const found: Publication[] = [];
  for (const publication of publications) {
    try {
      await (await open(publication.staged, 'r')).close();
      found.push(publication);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
  }
  return found;
}
