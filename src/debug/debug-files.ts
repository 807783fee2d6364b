/** The files of debug dumps: their names, checks, writes, and the removal of old ones. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { access, open, readdir, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { beginsWith } from '../files/own-file.js';
import { FOLDERS } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import { errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';

/** Debug files that a lake keeps, at most. */
const MOST_FILES = 10;
/** A killed run leaves a file with the ending of a staged one. */
const NAME = /^debug-\d{8}T\d{9}Z-\d+\.(?:json|cpuprofile|heapsnapshot)(?:\.[\da-f-]{36})?$/;

/** The first characters of each dump. */
const DUMP_HEAD = '{\n  "cryptodlDebugDump": 1,';

/** `debug-20261121T070000123Z-4711`: the time, and the number of the process, because several processes may use one lake. */
export function debugName(nowMs: number): string {
  return `debug-${timeText(nowMs)}-${process.pid}`;
}

function timeText(nowMs: number): string {
  return new Date(nowMs).toISOString().replaceAll(/[-:.]/g, '');
}

/** The path in the lake without ending. Rejects with `disk` for a link in the path, and with errors of the system. */
export async function pathInLake(paths: LakePaths, nowMs: number): Promise<string> {
  const folder = await paths.folder(FOLDERS.internal);
  await makeFolder(folder);
  return join(folder, debugName(nowMs));
}

/** `dump.json` → `dump-20261121T070000123Z-4711`: beside the file of --debug-dump, without ending. */
export function pathBeside(file: string, nowMs: number): string {
  const name = basename(file).replace(/\.json$/, '');
  return join(dirname(file), `${name}-${timeText(nowMs)}-${process.pid}`);
}

/** Removes the oldest debug files of a lake. Other files, folders and links stay. */
export async function pruneDebugFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  const own = entries.filter((entry) => entry.isFile() && NAME.test(entry.name)).map(({ name }) => name);
  for (const name of own.sort().slice(0, -MOST_FILES)) await rm(join(folder, name), { force: true });
}

/** Whether the path is a character device, for example /dev/null: it is written to, but never replaced. */
export async function isDevice(path: string): Promise<boolean> {
  return (await statsOf(path))?.isCharacterDevice() === true;
}

/** Rejects with a usage error if --debug-dump cannot be written to this path, or would replace a file of another kind. */
export async function refuseBadDump(path: string): Promise<void> {
  const facts = await statsOf(path);
  const refuse = (problem: string): Error =>
    usage(`--debug-dump: ${shownPath(path)} ${problem}`, 'name a new file');
  if (facts === undefined) return refuseBadFolder(path);
  if (facts.isCharacterDevice()) return;
  if (facts.isDirectory()) throw refuse('is a folder');
  if (!facts.isFile()) throw refuse('is neither a file nor a character device');
  if (!(await beginsWith(path, DUMP_HEAD))) throw refuse('is not a debug dump, and is not replaced');
}

/** Creates the folder of a new file. Rejects with a usage error if no file can be made in it. */
async function refuseBadFolder(path: string): Promise<void> {
  try {
    await makeFolder(dirname(path));
    await access(dirname(path), constants.W_OK);
  } catch (error) {
    throw unusable(path, error);
  }
}

function unusable(path: string, error: unknown): Error {
  const reason = reasonOf(errnoOf(error));
  return usage(`--debug-dump: ${shownPath(path)} cannot be written (${reason})`, 'name another file');
}

async function statsOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw unusable(path, error);
  }
}

/**
 * Writes a file that appears under its name only when it is complete. A device is written to directly. Rejects with errors of the
 * system, and leaves no partial file behind.
 */
export async function writeWhole(
  path: string,
  write: (file: FileHandle) => Promise<void>,
  { mode = 0o666 }: { readonly mode?: number } = {},
): Promise<void> {
  const facts = await stat(path).catch(() => undefined);
  if (facts?.isCharacterDevice() === true) {
    await writeAndClose(await open(path, 'w'), write);
    return;
  }
  const staged = `${path}.${randomUUID()}`;
  try {
    await writeAndClose(await open(staged, 'wx', mode), async (file) => {
      await write(file);
      await file.sync();
    });
    await rename(staged, path);
  } catch (error) {
    await rm(staged, { force: true }).catch(() => undefined);
    throw error;
  }
}

async function writeAndClose(file: FileHandle, write: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await write(file);
  } finally {
    await file.close();
  }
}
