/** `--format zip`: the archive's own files and sidecars in the archive's own layout; nothing is converted. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { bodySize } from '../fetch.js';
import { keyFile, seriesFolder } from '../lake/layout.js';
import { appendManifest, readManifest } from '../lake/manifest.js';
import type { Held, ObjectLine } from '../lake/manifest.js';
import { FileWriter } from '../lake/write-files.js';
import type { FileToWrite } from '../lake/write-files.js';
import type { PartitionPlan } from '../task.js';
import { SIDECAR, sidecarText } from '../venue/keys.js';
import type { ReceivedObject } from './csv-input.js';
import { objectLine, replacedRevision } from './commit.js';
import type { PartitionWriter, WriterContext } from './writer.js';

export function createZipWriter(context: WriterContext): PartitionWriter {
  const files = new FileWriter();
  return {
    prepare: (plan) => Promise.resolve(plan),
    close: () => files.close(),
    write: async (plan, received) => {
      await files.write((await Promise.all(received.map((object) => filesOf(context, object)))).flat());
      const at = new Date(context.clock.now()).toISOString();
      const folder = await context.paths.folder(seriesFolder(context.venue.name, plan.series));
      await mkdir(folder, { recursive: true });
      const { zip: held } = await readManifest(folder);
      const lines = received.map((object) => lineOf(context, plan, { received: object, held }, at));
      await context.serialize(folder, () => appendManifest(folder, lines));
      return {
        written: new Map(lines.map(({ key, replaces }) => [key, replaces === undefined ? {} : { replaces }])),
        failed: new Map(),
        files: received.length,
        bytes: received.reduce((sum, { zipBytes }) => sum + zipBytes, 0),
        duplicatesAcross: 0,
        overlaps: [],
      };
    },
  };
}

/** The sidecar first: a zip is never seen without the digest that vouches for it. */
async function filesOf(context: WriterContext, received: ReceivedObject): Promise<FileToWrite[]> {
  const { key } = received.object;
  const { zip } = received;
  const place = keyFile(key);
  const file = {
    content: zip.kind === 'file' ? zip.path : zip.bytes,
    staged: stagedPath(context),
    target: join(await context.paths.folder(dirname(place)), basename(place)),
  };
  const target = `${file.target}${SIDECAR}`;
  if (received.verified !== 'sidecar') {
    // The sidecar of an earlier revision does not vouch for this one.
    await rm(target, { force: true });
    return [file];
  }
  const content = Buffer.from(sidecarText(key, received.sha256));
  return [{ content, staged: stagedPath(context), target }, file];
}

/** What a failure leaves there is cleared by the next run. */
function stagedPath(context: WriterContext): string {
  return join(context.paths.staging, `${randomUUID()}.partial`);
}

function lineOf(
  context: WriterContext,
  plan: PartitionPlan,
  { received, held }: { readonly received: ReceivedObject; readonly held: Held },
  at: string,
): ObjectLine {
  const replaces = replacedRevision(held, received);
  return {
    ...objectLine(received, plan, at, context.tool),
    ...(replaces === undefined ? {} : { replaces }),
    file: keyFile(received.object.key),
    fileBytes: bodySize(received.zip),
    fileSha256: received.sha256,
  };
}
