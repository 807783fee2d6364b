/** `--format zip`: stores the zips and sidecars of the archive in the layout of the archive, without conversion. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { bodySize } from '../../model/fetch.js';
import { moveToQuarantine } from '../quarantine.js';
import { backingOf } from '../../files/backing.js';
import { cachedFolderCheck } from '../../files/path-checks.js';
import { seriesFolder, stagingFolder } from '../layout.js';
import { keyPath } from '../safe-names.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { fileFacts, fileSize, removeFile } from '../../files/publish.js';
import type { PartitionPlan } from '../../model/task.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { publishedOrFailed } from './partition-writer.js';
import { recordShorterRevisions } from './shorter-revisions.js';
import { droppedLine, heldLine, objectLine, replacedRevision } from './object-lines.js';
import type { PartitionWriter, WriterContext } from './writer.js';
import { lostZips, worseZips, pathOf, supersededZips } from './zip-guards.js';
import type { FileToWrite } from './stage-zips.js';
import { stageAround, filesOf } from './stage-zips.js';

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
