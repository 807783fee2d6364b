/** Removes zips from the lake: those whose days other zips take, damaged ones, and files that no manifest line names. */
import { basename, dirname, join } from 'node:path';
import type { CryptodlError } from '../../model/errors.js';
import { moveToQuarantine } from '../quarantine.js';
import type { LakePaths } from '../layout.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { fileFacts, fileSize, removeFile } from '../../files/publish.js';
import { lostError } from './write-results.js';
import type { Missing, WriterContext } from './writer.js';
import { backingOf } from '../../files/backing.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { heldLine } from './object-lines.js';
import type { FileToWrite } from './stage-zips.js';

/** Judges the zips of absent objects: intact ones are still held, missing and damaged ones are lost. Moves damaged ones to the quarantine. */
export async function lostZips(
  { exchange, paths, clock }: WriterContext,
  held: HeldObjects,
  missing: Missing,
) {
  const stillHeld = new Set<string>();
  const failed = new Map<string, CryptodlError>();
  const lines: ObjectLine[] = [];
  let quarantined = 0;
  for (const line of missing.size === 0 ? [] : held.lines()) {
    if (missing.get(line.key) !== 'absent') continue;
    const path = await pathOf(paths, line.file);
    const isThere = (await fileSize(path)) !== undefined;
    if (isThere && (await fileFacts(path)).sha256 === line.fileSha256) {
      stillHeld.add(line.key);
      continue;
    }
    const cause = 'it does not match its manifest, and the archive no longer has it';
    const quarantinePath = await moveToQuarantine(paths, path, cause, clock.now());
    const { sidecar } = exchange.archive;
    if (sidecar !== undefined) await moveToQuarantine(paths, path + sidecar.suffix, cause, clock.now());
    quarantined += quarantinePath === undefined ? 0 : 1;
    failed.set(line.key, lostError(line.file, line.key, quarantinePath));
    lines.push(line);
  }
  return { stillHeld, failed, lines, quarantined };
}

export async function pathOf(paths: LakePaths, file: string): Promise<string> {
  return join(await paths.folder(dirname(file)), basename(file));
}

/**
 * Moves to the quarantine the files in the places of the new zips, if no manifest line names them. Resolves with their number. A file that equals
 * the new one stays: a killed run has published it.
 */
export async function quarantineUnlisted(
  { paths, clock }: WriterContext,
  held: HeldObjects,
  taken: readonly ReceivedObject[],
  made: readonly (readonly FileToWrite[])[],
): Promise<number> {
  let quarantined = 0;
  // Those that a killed run has left in a bucket are not known yet.
  const folders = new Set(made.flat().map(({ target }) => dirname(target)));
  await backingOf(paths.root)?.openFolders([...folders]);
  for (const [at, { object, sha256 }] of taken.entries()) {
    const target = made[at]?.at(-1)?.target;
    if (target === undefined || heldLine(held, object) !== undefined) continue;
    if ((await fileSize(target)) === undefined || (await fileFacts(target)).sha256 === sha256) continue;
    const cause = 'no manifest line names this file';
    if ((await moveToQuarantine(paths, target, cause, clock.now())) !== undefined) quarantined += 1;
  }
  return quarantined;
}

/** Removes zips that no line names any more, with their sidecars. A file with other bytes stays: it is not ours. */
export async function removeZips(
  { exchange, paths }: WriterContext,
  lines: readonly ObjectLine[],
): Promise<void> {
  for (const { file, fileSha256 } of lines) {
    const path = await pathOf(paths, file);
    if ((await fileSize(path)) === undefined || (await fileFacts(path)).sha256 !== fileSha256) continue;
    await removeFile(path);
    const { sidecar } = exchange.archive;
    if (sidecar !== undefined) await removeFile(path + sidecar.suffix);
  }
}
