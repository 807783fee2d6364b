/** Compares received zips with held ones, so that no held rows are lost. Removes zips from the lake: those whose days other zips take, damaged ones, and files that no manifest line names. */
import { CryptodlError } from '../../model/errors.js';
import { grouped } from '../../model/by-name.js';
import { monthOf, monthPeriod, periodText } from '../../model/calendar.js';
import { bringIn, backingOf } from '../../files/backing.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { removeFile } from '../../files/publish.js';
import { fileSize, fileFacts } from '../../files/file-facts.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { shorterRevision } from './shorter-revisions.js';
import { heldLine, replacedRevision } from './commit.js';
import { lostError, type ShorterRevision, type WriterContext, type Missing } from './writer.js';
import { basename, dirname, join } from 'node:path';
import { moveToQuarantine } from '../quarantine.js';
import type { LakePaths } from '../layout.js';

/** `taken`: the received zips that may be stored; `superseded`: the held zips whose days they take. With `takesAll`, revisions are not compared. */
export async function judgedZips(
  context: WriterContext,
  held: HeldObjects,
  received: readonly ReceivedObject[],
  takesAll: boolean,
) {
  const { shorter, unreadable } = await worseZips(context, held, takesAll ? [] : received);
  const isShorter = new Set(shorter.map((each) => each.received));
  const sound = received.filter((each) => !isShorter.has(each) && !unreadable.has(each.object.key));
  const { superseded, refused } = await supersededZips(context, held, sound);
  const taken = sound.filter((each) => !refused.has(each.object.key));
  return { taken, superseded, shorter, failed: new Map([...unreadable, ...refused]) };
}

/** Revisions with fewer rows than the held zip, and unreadable revisions of a readable one. Unpacks both zips, because revisions are rare. */
async function worseZips(context: WriterContext, held: HeldObjects, received: readonly ReceivedObject[]) {
  const shorter: ShorterRevision[] = [];
  const unreadable = new Map<string, CryptodlError>();
  for (const each of received) {
    const { key } = each.object;
    const line = heldLine(held, each.object);
    if (line === undefined || replacedRevision(held, each) === undefined) continue;
    const keptRows = await heldRows(context, line);
    if (keptRows === undefined) continue;
    const rows = await context.countRows(each.body, key);
    if (typeof rows === 'number') shorter.push(...shorterRevision(line, each, { rows, keptRows }));
    else unreadable.set(key, rows);
  }
  return { shorter, unreadable };
}

/** The rows of a held zip. Undefined if its size is not that of its line, or if it cannot be read. */
async function heldRows(context: WriterContext, line: ObjectLine): Promise<number | undefined> {
  const path = await pathOf(context.paths, line.file);
  const size = await fileSize(path);
  if (size !== line.fileBytes) return undefined;
  await bringIn(path);
  const rows = await context.countRows({ kind: 'file', path, size }, line.key);
  return typeof rows === 'number' ? rows : undefined;
}

/**
 * The held zips whose days other objects take: those of a month for its zip, or the zip of a month for its days. `refused`: objects that would
 * leave out rows of a held zip; an unreadable zip has none.
 */
async function supersededZips(
  context: WriterContext,
  held: HeldObjects,
  received: readonly ReceivedObject[],
) {
  const superseded: ObjectLine[] = [];
  const refused = new Map<string, CryptodlError>();
  const byMonth = grouped(
    received,
    ({ object }) => `${object.period.cadence} ${monthOf(object.period.from)}`,
  );
  for (const objects of byMonth.values()) {
    const { cadence, from } = objects[0].object.period;
    const lines = held.overlapping(monthPeriod(monthOf(from))).filter((line) => line.cadence !== cadence);
    const keptRows = await sumOf(lines, (line) => heldRows(context, line));
    const rows =
      keptRows === 0 ? 0 : await sumOf(objects, ({ body, object }) => context.countRows(body, object.key));
    if (rows >= keptRows) superseded.push(...(keptRows > 0 ? lines : []));
    else
      for (const { object } of objects)
        refused.set(
          object.key,
          new CryptodlError(
            'partition-incomplete',
            `the held zips of ${periodText(monthPeriod(monthOf(from)))} have ${keptRows} rows, and the ${cadence} objects that would replace them ${rows}`,
          ),
        );
  }
  return { superseded, refused };
}

async function sumOf<Item>(
  items: readonly Item[],
  count: (item: Item) => Promise<number | CryptodlError | undefined>,
): Promise<number> {
  let sum = 0;
  for (const item of items) {
    const rows = await count(item);
    if (typeof rows === 'number') sum += rows;
  }
  return sum;
}

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

const pathOf = async (paths: LakePaths, file: string): Promise<string> =>
  join(await paths.folder(dirname(file)), basename(file));

/**
 * Moves to the quarantine the files in the places of the new zips, if no manifest line names them. Resolves with their number. A file that equals
 * the new one stays: a killed run has published it.
 */
export async function quarantineUnlisted(
  { paths, clock }: WriterContext,
  held: HeldObjects,
  made: readonly { readonly received: ReceivedObject; readonly target: string }[],
): Promise<number> {
  let quarantined = 0;
  // Those that a killed run has left in a bucket are not known yet.
  const folders = new Set(made.map(({ target }) => dirname(target)));
  await backingOf(paths.root)?.openFolders([...folders]);
  for (const { received, target } of made) {
    const { object, sha256 } = received;
    if (heldLine(held, object) !== undefined) continue;
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
