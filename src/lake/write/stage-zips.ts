/** Writes zips and their sidecars to the staging folder, and gives them their names. */
import { randomUUID } from 'node:crypto';
import { closeSync, fsync, openSync, writeFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { withPath } from '../../model/errors.js';
import { keyPath } from '../safe-names.js';
import type { LakePaths } from '../layout.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { removeFile, removeStaged, renameAll, type Publication } from '../../files/publish.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { WriterContext } from './writer.js';

/** A file that is written to `staged` and then renamed to `target`. */
export interface FileToWrite extends Publication {
  /** Bytes, or the path of a file to copy. */
  readonly content: Uint8Array | string;
}

/** The files that are written and synced at the same time. */
const AT_ONCE = 64;
const synced = promisify(fsync);

/** Small files are written in the main thread, because a round trip to the thread pool takes longer. Only copies and syncs use the pool. */
async function stage({ content, staged }: FileToWrite): Promise<void> {
  if (typeof content === 'string') await copyFile(content, staged);
  const file = openSync(staged, typeof content === 'string' ? 'r+' : 'w');
  try {
    if (typeof content !== 'string') writeFileSync(file, content);
    await synced(file);
  } catch (error) {
    throw withPath(error, staged);
  } finally {
    closeSync(file);
  }
}

/**
 * Stages all files and renames new ones, then calls `append` with a function that renames the files that replace committed ones. `made[n]` belongs
 * to `lines[n]`.
 */
export async function stageAround(
  made: readonly (readonly FileToWrite[])[],
  lines: readonly ObjectLine[],
  append: (replace: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const replacesFile = (at: number): boolean => lines[at]?.fileBefore !== undefined;
  const files = made.flat();
  try {
    for (let at = 0; at < files.length; at += AT_ONCE)
      await Promise.all(files.slice(at, at + AT_ONCE).map((file) => stage(file)));
    await renameAll(made.filter((_, at) => !replacesFile(at)).flat());
    await append(() => renameAll(made.filter((_, at) => replacesFile(at)).flat()));
  } catch (error) {
    // Staged files would take space until the next run, and the error may be a full disk.
    await removeStaged(files);
    throw error;
  }
}

/** The files of one object. The sidecar comes first, so that a zip never appears without its digest. */
export async function filesOf(
  context: WriterContext,
  folderOf: LakePaths['folder'],
  received: ReceivedObject,
): Promise<FileToWrite[]> {
  const { key } = received.object;
  const { zip } = received;
  const path = keyPath(key);
  const file = {
    content: zip.kind === 'file' ? zip.path : zip.bytes,
    staged: stagedPath(context),
    target: join(await folderOf(dirname(path)), basename(path)),
  };
  const { sidecar } = context.exchange.archive;
  if (sidecar === undefined) return [file];
  const target = file.target + sidecar.suffix;
  if (received.verified !== 'sidecar') {
    // The sidecar of an earlier revision does not match this one.
    await removeFile(target);
    return [file];
  }
  const content = Buffer.from(sidecar.textOf(key, received.sha256));
  return [{ content, staged: stagedPath(context), target }, file];
}

/** A new path in the staging folder. The next run removes files that a failed run has left there. */
function stagedPath(context: WriterContext): string {
  return join(context.paths.staging, `${randomUUID()}.partial`);
}
