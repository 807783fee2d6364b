/**
 * Moves the files of a lake of an earlier version to their present places: the manifests from the folders of their series, the
 * failure reports from `failures`, the quarantine from `quarantine`. Nothing is overwritten, no symbolic link is followed, and
 * files that cryptodl did not write stay.
 */
import { rm, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { errnoOf } from '../model/errors.js';
import { countText } from '../model/units.js';
import { FOLDERS } from './layout.js';
import type { LakePaths, VenueFolders } from './layout.js';
import { EARLIER_MANIFEST, manifestPlace } from './manifest-place.js';
import { cachedFolderCheck, entryAt } from './path-checks.js';
import { fileFacts, fileSize, makeSyncedFolder, moveFile, syncDirectory } from './publish.js';
import { listEntries, looseBelow, walkLake } from './walk-lake.js';

/** The names of two folders in a lake of an earlier version. */
export const EARLIER = { failures: 'failures', quarantine: 'quarantine' } as const;

/** A file in `.cryptodl` that exists while files are moved, so that the next run continues after a crash. */
const UNFINISHED = 'upgrade';

/**
 * Resolves with a text for people; undefined if there is nothing to move. Needs the lock of the lake. A lake with a folder of
 * manifests has the present places, so its series are not listed again: a series folder that is copied into it later keeps its
 * manifest until the series is written.
 */
export async function upgradeLake(paths: LakePaths, venue: VenueFolders): Promise<string | undefined> {
  const { folders } = await listEntries(paths.root);
  const unfinished = join(paths.internal, UNFINISHED);
  const isContinued = (await fileSize(unfinished)) !== undefined;
  if (folders.includes(FOLDERS.manifests) && !isContinued) return undefined;
  const moves = [
    ...(await manifestsIn(paths, venue)),
    ...(folders.includes(EARLIER.failures) ? await reportsIn(paths) : []),
    ...(folders.includes(EARLIER.quarantine) ? await quarantinedIn(paths) : []),
  ];
  if (moves.length > 0 && !isContinued) await begin(unfinished);
  const text = await moveAll(paths, moves);
  // A move that was killed after its last file has left the empty folders.
  for (const name of Object.values(EARLIER))
    if (folders.includes(name) && (isContinued || moves.some(({ from }) => from.startsWith(`${name}/`))))
      await removeEmptyFolders(join(paths.root, name));
  await rm(unfinished, { force: true });
  return text;
}

async function begin(unfinished: string): Promise<void> {
  // Removed first, because writing through a symbolic link would change its target.
  await rm(unfinished, { force: true });
  await writeFile(unfinished, '', { flag: 'wx' });
  await syncDirectory(dirname(unfinished));
}

/** A file to move; the paths are relative to the root. */
interface Move {
  readonly from: string;
  readonly to: string;
  /** `manifest`, for the text. Files without a word are not counted. */
  readonly word?: string;
}

async function manifestsIn({ root }: LakePaths, venue: VenueFolders): Promise<Move[]> {
  const moves: Move[] = [];
  for await (const found of walkLake(root, venue)) {
    if (found.kind !== 'series') continue;
    const { path, earlier } = manifestPlace(found.path);
    const from = relative(root, earlier).replaceAll(sep, '/');
    // With a manifest in both places, the one of the earlier version is an ordinary file of the folder.
    if (found.manifest?.path === from || found.files.includes(EARLIER_MANIFEST))
      moves.push({ from, to: relative(root, path).replaceAll(sep, '/'), word: 'manifest' });
  }
  return moves;
}

const REPORT = /^(vision|metrics|repair|retry|run)-\d{8}T\d{6}Z(-\d+)?\.jsonl$/;

async function reportsIn({ root }: LakePaths): Promise<Move[]> {
  const { files } = await listEntries(join(root, EARLIER.failures));
  return files
    .filter((name) => REPORT.test(name))
    .map((name) => ({
      from: `${EARLIER.failures}/${name}`,
      to: `${FOLDERS.failures}/${name}`,
      word: 'failure report',
    }));
}

/** Quarantined files have a `.cause` file each, which is written last, so it is moved last. */
async function quarantinedIn({ root }: LakePaths): Promise<Move[]> {
  const moves: Move[] = [];
  for await (const { kind, path: cause } of looseBelow(root, EARLIER.quarantine)) {
    if (kind === 'link' || !cause.endsWith('.cause')) continue;
    const to = FOLDERS.quarantine + cause.slice(EARLIER.quarantine.length);
    moves.push(
      { from: withoutCause(cause), to: withoutCause(to) },
      { from: cause, to, word: 'quarantined file' },
    );
  }
  return moves;
}

function withoutCause(path: string): string {
  return path.slice(0, -'.cause'.length);
}

/** The user of this run must not change the folder. Readers find a manifest there too. */
const FORBIDDEN: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS']);

async function moveAll({ root }: LakePaths, moves: readonly Move[]): Promise<string | undefined> {
  const folderOf = cachedFolderCheck(root);
  const folders = new Set<string>();
  const moved = new Map<string, number>();
  let kept = 0;
  for (const { from, to, word } of moves) {
    const source = join(root, from);
    const folder = await folderOf(dirname(to));
    const target = join(folder, basename(to));
    if ((await fileSize(source)) === undefined) continue;
    try {
      if ((await entryAt(target)) !== undefined) {
        await removeCopy(source, target);
        continue;
      }
      if (!folders.has(folder)) await makeSyncedFolder(folder);
      folders.add(folder);
      await moveFile(source, target);
      if (word !== undefined) moved.set(word, (moved.get(word) ?? 0) + 1);
    } catch (error) {
      if (!FORBIDDEN.has(errnoOf(error))) throw error;
      kept += 1;
    }
  }
  for (const folder of folders) await syncDirectory(folder);
  return textOf(moved, kept);
}

/** A move to another file system that was killed before its last step has left the source. */
async function removeCopy(source: string, target: string): Promise<void> {
  const [from, to] = [await entryAt(source), await entryAt(target)];
  // Both paths may lead to one file, for example through a mount.
  const isOneFile = from?.ino === to?.ino && from?.dev === to?.dev;
  if (to?.isFile() !== true || from?.size !== to.size || isOneFile) return;
  if ((await fileFacts(source)).sha256 === (await fileFacts(target)).sha256) await rm(source);
}

function textOf(moved: ReadonlyMap<string, number>, kept: number): string | undefined {
  if (moved.size === 0 && kept === 0) return undefined;
  const parts = [...moved].map(([word, number]) => countText(number, word));
  const stays = kept === 0 ? '' : `; ${countText(kept, 'file')} could not be moved and stay`;
  return `the lake has the layout of an earlier version: moved ${parts.join(', ') || 'nothing'} to ${FOLDERS.manifests}, ${FOLDERS.failures} and ${FOLDERS.quarantine}${stays}`;
}

const NOT_EMPTY: ReadonlySet<string> = new Set([...FORBIDDEN, 'ENOTEMPTY', 'EEXIST', 'EBUSY']);

async function removeEmptyFolders(path: string): Promise<void> {
  for (const name of (await listEntries(path)).folders) await removeEmptyFolders(join(path, name));
  try {
    await rmdir(path);
  } catch (error) {
    if (!NOT_EMPTY.has(errnoOf(error))) throw error;
  }
}
