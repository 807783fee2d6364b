/**
 * Commits of staged files, in an order in which every row that was committed stays readable: new files, manifest lines, files that replace others
 * of the same name (`undone-commits.ts`), removals. A commit that also removes files writes a journal first, so that the next run completes
 * it after a crash. Applying a journal twice has the same effect as applying it once. All its names are checked when it is read, because the lake may
 * have been copied, restored or edited.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { CryptodlError, unlessMissing } from '../model/errors.js';
import type { ManifestLine, ObjectLine } from '../model/manifest-line.js';
import { isPartitionFile, isPlainName, readRegularFile } from '../files/path-checks.js';
import { createLineReader } from './check-manifest-line.js';
import { completeLinesOf } from './complete-lines.js';
import { openManifest } from './manifest-place.js';
import type { ObjectKeys } from './object-keys.js';
import { seriesAt, type LakePaths, type ExchangeFolders } from './layout.js';
import { applyLine, emptyManifest } from './manifest.js';
import { appendManifest, type Manifests } from './manifests.js';
import { filesBefore } from './undone-commits.js';
import { publish, removeFile, removeStaged, renameAll, syncAll, syncDirectory } from '../files/publish.js';
import { fileFacts, fileSize } from '../files/file-facts.js';
import type { Publication } from '../files/publish.js';

/** One commit, with absolute paths. */
export interface FileCommit {
  readonly seriesFolder: string;
  readonly publications: readonly Publication[];
  /** Superseded files. */
  readonly dead: readonly string[];
  readonly lines: readonly ManifestLine[];
}

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

/** Writes the journal, applies it and removes it. If writing fails, no staged file stays. If applying fails, all stays for the next run. */
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
async function apply(
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

/** Facts of the exchange, for the checks of paths and lines in a journal. */
type JournalExchange = Pick<ExchangeFolders, 'name' | 'markets'> & { readonly archive: ObjectKeys };

/** The files are names in their folders. */
interface Journal extends Omit<FileCommit, 'seriesFolder'> {
  readonly lake: Awaited<ReturnType<typeof lakeIdentity>>;
  /** Relative to the lake's root, with `/`. */
  readonly series: string;
}

async function buildJournal(
  paths: LakePaths,
  { seriesFolder, publications, dead, lines }: FileCommit,
): Promise<Journal> {
  return {
    lake: await lakeIdentity(paths),
    series: relative(paths.root, seriesFolder).replaceAll(sep, '/'),
    publications: publications.map(({ staged, target }) => ({
      staged: basename(staged),
      target: basename(target),
    })),
    dead: dead.map((path) => basename(path)),
    lines,
  };
}

class JournalRefused extends Error {}

/**
 * Rejects with `JournalRefused` for a journal that is damaged, belongs to another lake, or names other files than the partitions
 * of one series. Rejects with the error of the disk for a journal that cannot be read.
 */
async function readJournal(paths: LakePaths, exchange: JournalExchange, path: string): Promise<FileCommit> {
  if (!(await lstat(path)).isFile()) throw new JournalRefused('it is not a regular file');
  try {
    const journal = JSON.parse((await readRegularFile(path)) ?? '') as Journal;
    await checkIdentity(paths, journal);
    return await resolveJournal(paths, exchange, journal);
  } catch (error) {
    // Errors of the disk say nothing about the journal.
    if (error instanceof JournalRefused || (error instanceof Error && 'errno' in error)) throw error;
    const why = error instanceof CryptodlError ? error.message : 'it is damaged';
    throw new JournalRefused(why, { cause: error });
  }
}

/** A copied lake has another inode; a renamed or remounted one keeps it. Device numbers may change with a reboot. */
async function checkIdentity(paths: LakePaths, journal: Journal): Promise<void> {
  const here = await lakeIdentity(paths);
  const { path, device, inode } = journal.lake;
  if (inode !== here.inode || (device !== here.device && path !== here.path))
    throw new JournalRefused(`it was written for another lake, ${path}`);
}

/** The path of the lake, and device and inode of `.cryptodl`. */
async function lakeIdentity({ root, internal }: LakePaths) {
  const { dev, ino } = await stat(internal, { bigint: true });
  return { path: await realpath(root), device: String(dev), inode: String(ino) };
}

/** The commit with absolute paths, all of them in the folder of one series or in the staging folder. */
async function resolveJournal(
  paths: LakePaths,
  exchange: JournalExchange,
  { series, publications, dead, lines }: Journal,
): Promise<FileCommit> {
  const isInside =
    seriesAt(exchange, series) !== undefined &&
    publications.every(({ staged, target }) => isPlainName(staged) && isPartitionFile(target)) &&
    dead.every(isPartitionFile);
  if (!isInside) throw new JournalRefused('it names files that are not partitions of a series');
  if (dead.length > 0 && lines.length === 0) throw new JournalRefused('it has no lines for what it removes');
  const seriesFolder = await paths.folder(series);
  const readLine = createLineReader(seriesFolder, exchange.archive);
  for (const line of lines) applyLine(emptyManifest(), readLine(JSON.stringify(line)));
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

interface RefusedCommit {
  /** Its name in `.cryptodl`. */
  readonly name: string;
  readonly why: string;
  /** The folder to which it was moved, with all staged files. */
  readonly kept: string;
}

const JOURNAL = /^commit-[\w-]+\.json(\.partial)?$/;

/** Completes the commits of a killed run in this lake. Returns rejected journals, which are moved to a new folder with all staged files instead. */
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
