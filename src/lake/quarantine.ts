/** The quarantine: damaged and foreign files of the lake, damaged manifest lines and rejected objects, each with its cause. */
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join, relative, sep } from 'node:path';
import type { Body } from '../model/fetch.js';
import { withAddresses } from '../text/mirror-roots.js';
import { bringIn, changeManifest } from '../files/backing.js';
import { FOLDERS, type LakePaths } from './layout.js';
import { safeKeyPath } from './safe-names.js';
import { claimManifest, manifestPlace } from './manifest-place.js';
import { moveFile, publishText, removeFile, syncDirectory } from '../files/publish.js';
import { fileSize } from '../files/file-facts.js';

/**
 * Moves a file of the lake and resolves with its new path, or with undefined if it does not exist. Never replaces a quarantined
 * file. Rejects with `disk` if the path of the file contains a symbolic link to a folder, which may lead out of the lake.
 */
export async function moveToQuarantine(
  paths: LakePaths,
  path: string,
  cause: string,
  nowMs: number,
): Promise<string | undefined> {
  await bringIn(path);
  const size = await fileSize(path);
  if (size === undefined) return undefined;
  const inLake = relative(paths.root, path).replaceAll(sep, '/');
  // The root itself may be a link.
  if (inLake.includes('/')) await paths.folder(dirname(inLake));
  const name = await freeName(paths, inLake, nowMs);
  const kept = await quarantine(paths, name, { kind: 'file', path, size }, cause);
  await syncDirectory(dirname(path));
  return kept;
}

/** Writes lines of a manifest to the quarantine, unchanged. Resolves with the path. */
export async function quarantineLines(
  paths: LakePaths,
  seriesFolder: string,
  { lines, cause, nowMs }: Readonly<{ lines: readonly string[]; cause: string; nowMs: number }>,
): Promise<string> {
  const manifest = relative(paths.root, manifestPlace(seriesFolder).path).replaceAll(sep, '/');
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  return quarantine(paths, await freeName(paths, manifest, nowMs), { kind: 'memory', bytes }, cause);
}

/** Replaces a manifest atomically by one with these lines. */
export async function rewriteManifest(
  paths: LakePaths,
  seriesFolder: string,
  lines: readonly string[],
): Promise<void> {
  const { path } = await claimManifest(seriesFolder);
  const text = lines.map((line) => `${line}\n`).join('');
  await changeManifest(seriesFolder, () => publishText(paths.staging, path, text));
}

/** `2024-01.parquet` → `2024-01-20261121T070000Z.parquet`, with a number if that name exists. */
async function freeName(paths: LakePaths, name: string, nowMs: number): Promise<string> {
  const stamp = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const ending = extname(name);
  const stem = join(dirname(name), basename(name, ending));
  for (let number = 1; ; number += 1) {
    const candidate = `${stem}-${stamp}${number === 1 ? '' : `-${number}`}${ending}`;
    if ((await fileSize(join(paths.quarantine, safeKeyPath(candidate)))) === undefined) return candidate;
  }
}

/** Stores a rejected body and a `.cause` file with one line. Resolves with the path. Replaces an earlier body of this key. */
export async function quarantine(paths: LakePaths, key: string, body: Body, cause: string): Promise<string> {
  const relativePath = `${FOLDERS.quarantine}/${safeKeyPath(key)}`;
  const path = join(await paths.folder(dirname(relativePath)), basename(relativePath));
  await mkdir(dirname(path), { recursive: true });
  // Removed first, because writing through a symbolic link would change its target.
  await removeFile(path);
  await removeFile(`${path}.cause`);
  // Written first: a killed command may leave a cause without its file, but no file without its cause.
  await writeFile(`${path}.cause`, `${withAddresses(cause).replaceAll(/\s+/g, ' ')}\n`, { flag: 'wx' });
  if (body.kind === 'memory') await writeFile(path, body.bytes, { flag: 'wx' });
  else await moveFile(body.path, path);
  return path;
}
