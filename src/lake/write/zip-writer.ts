/** `--format zip`: stores the zips and sidecars of the archive in the layout of the archive, without conversion. */
import { randomUUID } from 'node:crypto';
import { closeSync, fsync, openSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { withPath } from '../../model/errors.js';
import { bodySize } from '../../model/fetch.js';
import { cachedFolderCheck } from '../../files/path-checks.js';
import { seriesFolder, stagingFolder, type LakePaths } from '../layout.js';
import { safeKeyPath } from '../safe-names.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import type { PartitionPlan } from '../../model/task.js';
import { removeFile, removeStaged, renameAll, type Publication } from '../../files/publish.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { recordShorterRevisions } from './shorter-revisions.js';
import { objectLine } from './commit.js';
import { droppedLine } from '../undone-commits.js';
import type { Missing, WriteResult, WriterContext } from './writer.js';
import { judgedZips, lostZips, quarantineUnlisted, removeZips } from './zip-guards.js';

/** Stores the received zips. Rejects like `PartitionWriter.write`. */
export async function writeZips(
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  missing: Missing,
): Promise<WriteResult> {
  const at = new Date(context.clock.now()).toISOString();
  const folder = await context.paths.folder(seriesFolder(context.exchange.name, plan.series));
  const { zip: held } = await context.manifests.of(folder);
  const takesAll = plan.force === true || context.acceptsShorter;
  const { taken, failed, shorter, superseded } = await judgedZips(context, held, received, takesAll);
  await context.lock?.confirm();
  // Checked again: symbolic links may have replaced folders since the zips were compared.
  const folderOf = cachedFolderCheck(context.paths.root);
  await folderOf(seriesFolder(context.exchange.name, plan.series));
  await stagingFolder(context.paths);
  const made = await Promise.all(
    taken.map(async (each) => ({
      received: each,
      line: lineOf(context, plan, { received: each, held, at }),
      ...(await filesOf(context, folderOf, each)),
    })),
  );
  const unlisted = await quarantineUnlisted(context, held, made);
  const lost = await lostZips(context, held, missing);
  const lines = made.map(({ line }) => line);
  const allLines = [...lines, ...lost.lines.map((line) => droppedLine(line, 'zip', at))];
  await context.timed('commit', { plan }, () =>
    stageAround(made, async (replace) => {
      // The folder shows that the lake has the series, even if its manifest is lost.
      if (taken.length > 0) await mkdir(folder, { recursive: true });
      await context.serialize(folder, () => context.manifests.append(folder, allLines, replace));
    }),
  );
  await removeZips(context, superseded);
  return {
    written: new Map(lines.map(({ key, replaces }) => [key, replaces === undefined ? {} : { replaces }])),
    failed: new Map([...lost.failed, ...failed]),
    stillHeld: lost.stillHeld,
    quarantined: lost.quarantined + unlisted,
    shorter: await recordShorterRevisions(context, folder, 'zip', shorter),
    files: taken.length,
    bytes: taken.reduce((sum, each) => sum + each.bytes, 0),
    duplicatesAcross: 0,
    overlaps: [],
  };
}

function lineOf(
  context: WriterContext,
  plan: PartitionPlan,
  { received, held, at }: Readonly<{ received: ReceivedObject; held: HeldObjects; at: string }>,
): ObjectLine {
  const file = safeKeyPath(received.object.key);
  const fileBefore = held.fileBefore(file);
  return {
    ...objectLine(received, plan, held, { at, tool: context.tool }),
    file,
    fileBytes: bodySize(received.body),
    fileSha256: received.sha256,
    ...(fileBefore === undefined ? {} : { fileBefore }),
  };
}

/** A file that is written to `staged` and then renamed to `target`. */
interface FileToWrite extends Publication {
  /** Bytes, or the path of a file to copy. */
  readonly content: Uint8Array | string;
}

/** The files of one object. The sidecar comes first, so that a zip never appears without its digest. */
async function filesOf(
  { paths, exchange }: WriterContext,
  folderOf: LakePaths['folder'],
  { object, body, verified, sha256 }: ReceivedObject,
): Promise<{ readonly files: readonly FileToWrite[]; readonly target: string }> {
  // The next run removes files that a failed run has left there.
  const stagedPath = (): string => join(paths.staging, `${randomUUID()}.partial`);
  const path = safeKeyPath(object.key);
  const target = join(await folderOf(dirname(path)), basename(path));
  const file = { content: body.kind === 'file' ? body.path : body.bytes, staged: stagedPath(), target };
  const { sidecar } = exchange.archive;
  if (sidecar === undefined) return { files: [file], target };
  const besideTarget = target + sidecar.suffix;
  if (verified !== 'sidecar') {
    // The sidecar of an earlier revision does not match this one.
    await removeFile(besideTarget);
    return { files: [file], target };
  }
  const content = Buffer.from(sidecar.textOf(object.key, sha256));
  return { files: [{ content, staged: stagedPath(), target: besideTarget }, file], target };
}

/** The files that are written and synced at the same time. */
const AT_ONCE = 64;
const synced = promisify(fsync);

/** Stages all files and renames new ones, then calls `append` with a function that renames the files that replace committed ones. */
async function stageAround(
  made: readonly { readonly files: readonly FileToWrite[]; readonly line: ObjectLine }[],
  append: (replace: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const files = made.flatMap((each) => each.files);
  const filesWhere = (isReplacing: boolean): FileToWrite[] =>
    made.flatMap((each) => ((each.line.fileBefore !== undefined) === isReplacing ? each.files : []));
  try {
    for (let at = 0; at < files.length; at += AT_ONCE)
      await Promise.all(files.slice(at, at + AT_ONCE).map((file) => stage(file)));
    await renameAll(filesWhere(false));
    await append(() => renameAll(filesWhere(true)));
  } catch (error) {
    // Staged files would take space until the next run, and the error may be a full disk.
    await removeStaged(files);
    throw error;
  }
}

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
