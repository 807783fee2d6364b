/** The journal of a commit: all its names are checked when it is read, because the lake may have been copied, restored or edited. */
import { lstat, realpath, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { CryptodlError } from '../model/errors.js';
import { createLineReader } from './check-manifest-line.js';
import type { ObjectKeys } from './object-keys.js';
import { isPartitionFile, isPlainName, readRegularFile } from '../files/path-checks.js';
import { seriesAt, type LakePaths, type ExchangeFolders } from './layout.js';
import type { ManifestLine } from '../model/manifest-line.js';
import { applyLine, emptyManifest } from './manifest.js';
import type { Publication } from '../files/publish.js';

/** Facts of the exchange, for the checks of paths and lines in a journal. */
export type JournalExchange = Pick<ExchangeFolders, 'name' | 'markets'> & { readonly archive: ObjectKeys };

/** One commit, with absolute paths. */
export interface FileCommit {
  readonly seriesFolder: string;
  readonly publications: readonly Publication[];
  /** Superseded files. */
  readonly dead: readonly string[];
  readonly lines: readonly ManifestLine[];
}

/** The files are names in their folders. All names are checked when a journal is read, because the lake may have been copied, restored or edited. */
interface Journal extends Omit<FileCommit, 'seriesFolder'> {
  readonly lake: Awaited<ReturnType<typeof lakeIdentity>>;
  /** Relative to the lake's root, with `/`. */
  readonly series: string;
}

export async function buildJournal(
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

export class JournalRefused extends Error {}

/**
 * Rejects with `JournalRefused` for a journal that is damaged, belongs to another lake, or names other files than the partitions
 * of one series. Rejects with the error of the disk for a journal that cannot be read.
 */
export async function readJournal(
  paths: LakePaths,
  exchange: JournalExchange,
  path: string,
): Promise<FileCommit> {
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
