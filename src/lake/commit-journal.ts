/**
 * Commits that take files away as well: what is to be done is written down first, so that a crash in the middle is
 * finished by the next run. Doing it twice does no harm.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { createLineCheck } from './check-line.js';
import { isPartitionFile, isPlainName, readRegularFile } from './path-checks.js';
import type { LakePaths, VenueFolders } from './layout.js';
import { seriesAt } from './layout.js';
import type { ManifestLine } from './manifest-line.js';
import { appendManifest, applyLine, emptyManifest } from './manifest.js';
import type { Manifests } from './manifests.js';
import { fileSize, publish, publishAll, removeStaged, syncAll, syncDirectory } from './publish.js';
import type { Publication } from './publish.js';

/** The staged files are gone afterwards, unless the next run must finish with them what this one began. */
export async function commitWithJournal(
  { paths, manifests }: { readonly paths: LakePaths; readonly manifests: Pick<Manifests, 'append'> },
  redo: JournaledCommit,
): Promise<void> {
  const journal = join(paths.own, `commit-${randomUUID()}.json`);
  try {
    await syncAll(redo.publications);
    await syncDirectory(paths.staging);
    await writeFile(`${journal}.partial`, JSON.stringify(await buildJournal(paths, redo)));
    await publish(`${journal}.partial`, journal);
  } catch (error) {
    // The journal first: one that is found counts, and needs what it names.
    for (const path of [journal, `${journal}.partial`]) await rm(path, { force: true });
    await removeStaged(redo.publications);
    throw error;
  }
  await apply(redo, (folder, lines) => manifests.append(folder, lines));
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
      if (name.endsWith('.json')) await apply(await readJournal(paths, venue, journal), appendManifest);
      await rm(journal);
    } catch (error) {
      if (!(error instanceof JournalRefused)) throw error;
      refused.set(name, error.message);
    }
  }
  return refused.size === 0 ? [] : setAsideJournals(paths, refused);
}

async function setAsideJournals(
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

async function apply(redo: JournaledCommit, append: Manifests['append']): Promise<void> {
  await mkdir(redo.seriesFolder, { recursive: true });
  const staged = await stillStaged(redo.publications);
  // A dead file may have the name of a new one that is there already.
  const published = new Set(
    redo.publications.filter((publication) => !staged.includes(publication)).map(({ target }) => target),
  );
  for (const file of redo.dead) if (!published.has(file)) await rm(file, { force: true });
  await publishAll(staged);
  await append(redo.seriesFolder, redo.lines);
}

async function stillStaged(publications: readonly Publication[]): Promise<Publication[]> {
  const sizes = await Promise.all(publications.map(({ staged }) => fileSize(staged)));
  return publications.filter((_, index) => sizes[index] !== undefined);
}

// What a commit is about to do, written down for the run that may have to finish it: each file by its name in this
// lake. A journal that is read is checked name by name, because the lake may have been copied, restored or edited
// since.

export interface JournaledCommit {
  readonly seriesFolder: string;
  readonly publications: readonly Publication[];
  /** Superseded files, which go before the new ones appear: at no moment are rows seen twice. */
  readonly dead: readonly string[];
  readonly lines: readonly ManifestLine[];
}

interface LakeIdentity {
  readonly path: string;
  /** Of `.cryptodl`. */
  readonly device: string;
  readonly inode: string;
}

interface Journal {
  /** Relative to the lake's root, with `/`. */
  readonly series: string;
  /** Names in the staging folder, and in the series' folder. */
  readonly publications: readonly Publication[];
  /** Names in the series' folder. */
  readonly dead: readonly string[];
  readonly lines: readonly ManifestLine[];
}

/** As it is written. */
interface OwnedJournal extends Journal {
  readonly lake: LakeIdentity;
}

async function buildJournal(paths: LakePaths, redo: JournaledCommit): Promise<OwnedJournal> {
  return { lake: await lakeIdentity(paths), ...relativeJournal(paths.root, redo) };
}

function relativeJournal(
  root: string,
  { seriesFolder, publications, dead, lines }: JournaledCommit,
): Journal {
  return {
    series: relative(root, seriesFolder).replaceAll(sep, '/'),
    publications: publications.map(({ staged, target }) => ({
      staged: basename(staged),
      target: basename(target),
    })),
    dead: dead.map((path) => basename(path)),
    lines,
  };
}

/** Thrown with the reason why a journal is not applied. */
class JournalRefused extends Error {}

/** Rejects for a journal that is damaged, another lake's, or leads out of this one. */
async function readJournal(paths: LakePaths, venue: VenueFolders, path: string): Promise<JournaledCommit> {
  if (!(await lstat(path)).isFile()) throw new JournalRefused('it is no regular file');
  try {
    const content = JSON.parse((await readRegularFile(path)) ?? '') as OwnedJournal | JournaledCommit;
    const journal =
      'seriesFolder' in content
        ? await convertAbsolutePaths(paths, content)
        : await checkIdentity(paths, content);
    return await resolveJournal(paths, venue, journal);
  } catch (error) {
    // What the disk says is no word on the journal.
    if (error instanceof JournalRefused || (error instanceof Error && 'errno' in error)) throw error;
    const why = error instanceof CryptodlError && error.code === 'disk' ? error.message : 'it is damaged';
    throw new JournalRefused(why, { cause: error });
  }
}

/** A copy of the lake has another inode. A renamed or remounted one has the same; device numbers may change with a boot. */
async function checkIdentity(paths: LakePaths, journal: OwnedJournal): Promise<Journal> {
  const own = await lakeIdentity(paths);
  const { path, device, inode } = journal.lake;
  if (inode !== own.inode || (device !== own.device && path !== own.path))
    throw new JournalRefused(`it was written for another lake, ${path}`);
  return journal;
}

async function lakeIdentity({ root, own }: LakePaths): Promise<LakeIdentity> {
  const { dev, ino } = await stat(own, { bigint: true });
  return { path: await realpath(root), device: String(dev), inode: String(ino) };
}

/** Earlier versions wrote absolute paths. */
async function convertAbsolutePaths({ root, own }: LakePaths, redo: JournaledCommit): Promise<Journal> {
  const roots = [root, await realpath(root)];
  const lake = roots.find((path) => redo.seriesFolder.startsWith(`${path}${sep}`));
  if (lake === undefined) throw new JournalRefused(`it is about ${redo.seriesFolder}`);
  const staging = join(lake, basename(own), 'tmp');
  const { publications, dead, seriesFolder } = redo;
  const isBelow =
    publications.every(({ staged }) => dirname(staged) === staging) &&
    [...dead, ...publications.map(({ target }) => target)].every((path) => dirname(path) === seriesFolder);
  if (!isBelow) throw new JournalRefused('it names files outside of its series');
  return relativeJournal(lake, redo);
}

/** With absolute paths, all of them in the folder of one series or among the staged files. */
async function resolveJournal(
  paths: LakePaths,
  venue: VenueFolders,
  { series, publications, dead, lines }: Journal,
): Promise<JournaledCommit> {
  const isInside =
    seriesAt(venue, series) !== undefined &&
    publications.every(({ staged, target }) => isPlainName(staged) && isPartitionFile(target)) &&
    dead.every(isPartitionFile);
  if (!isInside) throw new JournalRefused('it names files that are no partitions of a series');
  const seriesFolder = await paths.folder(series);
  const checked = createLineCheck(seriesFolder);
  for (const line of lines) applyLine(emptyManifest(), checked(line));
  return {
    seriesFolder,
    publications: publications.map(({ staged, target }) => ({
      staged: join(paths.staging, staged),
      target: join(seriesFolder, target),
    })),
    dead: dead.map((name) => join(seriesFolder, name)),
    lines,
  };
}
