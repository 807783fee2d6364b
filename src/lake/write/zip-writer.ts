/** `--format zip`: stores the zips and sidecars of the archive in the layout of the archive, without conversion. */
import { mkdir } from 'node:fs/promises';
import { bodySize } from '../../model/fetch.js';
import { cachedFolderCheck } from '../../files/path-checks.js';
import { seriesFolder, stagingFolder } from '../layout.js';
import { keyPath } from '../safe-names.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import type { PartitionPlan } from '../../model/task.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { publishedOrFailed } from './publish-series.js';
import { recordShorterRevisions } from './shorter-revisions.js';
import { droppedLine, objectLine, replacedRevision } from './object-lines.js';
import type { PartitionWriter, WriterContext } from './writer.js';
import { worseZips, supersededZips } from './zip-guards.js';
import { lostZips, quarantineUnlisted, removeZips } from './remove-zips.js';
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
