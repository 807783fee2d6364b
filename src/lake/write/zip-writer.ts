/** `--format zip`: stores the zips and sidecars of the archive in the layout of the archive, without conversion. */
import { randomUUID } from 'node:crypto';
import { closeSync, fsync, openSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { bodySize } from '../../model/fetch.js';
import { withPath } from '../../model/errors.js';
import { CryptodlError } from '../../model/errors.js';
import { grouped } from '../../model/by-name.js';
import { monthOf, monthPeriod, periodText } from '../../model/calendar.js';
import { moveToQuarantine } from '../quarantine.js';
import { backingOf, bringIn } from '../../files/backing.js';
import { cachedFolderCheck } from '../../files/path-checks.js';
import { keyPath, seriesFolder, stagingFolder } from '../layout.js';
import type { LakePaths } from '../layout.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { fileFacts, fileSize, removeFile, removeStaged, renameAll } from '../../files/publish.js';
import type { Publication } from '../../files/publish.js';
import type { PartitionPlan } from '../../model/task.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { lostError, publishedOrFailed, recordShorterRevisions, shorterRevision } from './partition-writer.js';
import { droppedLine, heldLine, objectLine, replacedRevision } from './commit.js';
import type { Missing, PartitionWriter, ShorterRevision, WriterContext } from './writer.js';

export function createZipWriter(context: WriterContext): PartitionWriter {
  return {
    prepare: (plan) => Promise.resolve(plan),
    write: (plan, received, missing) =>
      publishedOrFailed(context, plan, received, async () => {
        const at = new Date(context.clock.now()).toISOString();
        const folder = await context.paths.folder(seriesFolder(context.exchange.name, plan.series));
        const { zip: held } = await context.manifests.of(folder);
        const takesAll = plan.force === true || context.acceptsShorter;
        const { shorter, unreadable } = await worseZips(context, held, takesAll ? [] : received);
        const isShorter = new Set(shorter.map((each) => each.received));
        const sound = received.filter((each) => !isShorter.has(each) && !unreadable.has(each.object.key));
        const { superseded, refused } = await supersededZips(context, held, sound);
        const taken = sound.filter((each) => !refused.has(each.object.key));
        await context.lock?.confirm();
        // Checked again: symbolic links may have replaced folders since the zips were compared.
        const folderOf = cachedFolderCheck(context.paths.root);
        await folderOf(seriesFolder(context.exchange.name, plan.series));
        await stagingFolder(context.paths);
        const made = await Promise.all(taken.map((each) => filesOf(context, folderOf, each)));
        const unlisted = await quarantineUnlisted(context, held, taken, made);
        const lines = taken.map((each) => lineOf(context, plan, { received: each, held }, at));
        const lost = await lostZips(context, held, missing);
        const allLines = [...lines, ...lost.lines.map((line) => droppedLine(line, 'zip', at))];
        await context.timed('commit', { plan }, async () => {
          await stageAround(made, lines, async (replace) => {
            // The folder shows that the lake has the series, even if its manifest is lost.
            if (taken.length > 0) await mkdir(folder, { recursive: true });
            await context.serialize(folder, () => context.manifests.append(folder, allLines, replace));
          });
        });
        await removeZips(context, superseded);
        if (shorter.length > 0) await recordShorterRevisions(context, folder, 'zip', shorter);
        return {
          written: new Map(
            lines.map(({ key, replaces }) => [key, replaces === undefined ? {} : { replaces }]),
          ),
          failed: new Map([...lost.failed, ...unreadable, ...refused]),
          stillHeld: lost.stillHeld,
          quarantined: lost.quarantined + unlisted,
          shorter: new Map(shorter.map((each) => [each.received.object.key, each])),
          files: taken.length,
          bytes: taken.reduce((sum, { zipBytes }) => sum + zipBytes, 0),
          duplicatesAcross: 0,
          overlaps: [],
        };
      }),
  };
}

/** A file that is written to `staged` and then renamed to `target`. */
interface FileToWrite extends Publication {
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
async function stageAround(
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

/** Judges the zips of absent objects: intact ones are still held, missing and damaged ones are lost. Moves damaged ones to the quarantine. */
async function lostZips({ exchange, paths, clock }: WriterContext, held: HeldObjects, missing: Missing) {
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

/**
 * Moves to the quarantine the files in the places of the new zips, if no manifest line names them. Resolves with their number. A file that equals
 * the new one stays: a killed run has published it.
 */
async function quarantineUnlisted(
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

/** Revisions with fewer rows than the held zip, and unreadable revisions of a readable one. Unpacks both zips, because revisions are rare. */
async function worseZips(context: WriterContext, held: HeldObjects, received: readonly ReceivedObject[]) {
  const [shorter, unreadable] = [new Array<ShorterRevision>(), new Map<string, CryptodlError>()];
  for (const each of received) {
    const { key } = each.object;
    const line = heldLine(held, each.object);
    if (line === undefined || replacedRevision(held, each) === undefined) continue;
    const keptRows = await heldRows(context, line);
    if (keptRows === undefined) continue;
    const rows = await context.countRows(each.zip, key);
    if (typeof rows !== 'number') {
      unreadable.set(key, rows);
      continue;
    }
    shorter.push(...shorterRevision(line, each, { rows, keptRows }));
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

async function pathOf(paths: LakePaths, file: string): Promise<string> {
  return join(await paths.folder(dirname(file)), basename(file));
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
      keptRows === 0 ? 0 : await sumOf(objects, ({ zip, object }) => context.countRows(zip, object.key));
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

/** Removes zips that no line names any more, with their sidecars. A file with other bytes stays: it is not ours. */
async function removeZips({ exchange, paths }: WriterContext, lines: readonly ObjectLine[]): Promise<void> {
  for (const { file, fileSha256 } of lines) {
    const path = await pathOf(paths, file);
    if ((await fileSize(path)) === undefined || (await fileFacts(path)).sha256 !== fileSha256) continue;
    await removeFile(path);
    const { sidecar } = exchange.archive;
    if (sidecar !== undefined) await removeFile(path + sidecar.suffix);
  }
}

/** The files of one object. The sidecar comes first, so that a zip never appears without its digest. */
async function filesOf(
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

function lineOf(
  context: WriterContext,
  plan: PartitionPlan,
  { received, held }: { readonly received: ReceivedObject; readonly held: HeldObjects },
  at: string,
): ObjectLine {
  const replaces = replacedRevision(held, received);
  const file = keyPath(received.object.key);
  const fileBefore = held.fileBefore(file);
  return {
    ...objectLine(received, plan, at, context.tool),
    ...(replaces === undefined ? {} : { replaces }),
    file,
    fileBytes: bodySize(received.zip),
    fileSha256: received.sha256,
    ...(fileBefore === undefined ? {} : { fileBefore }),
  };
}
