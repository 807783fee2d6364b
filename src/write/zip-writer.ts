/** `--format zip`: the archive's own files and sidecars in the archive's own layout; nothing is converted. */
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Body } from '../fetch.js';
import { bodySize } from '../fetch.js';
import { keyFile, seriesFolder } from '../lake/layout.js';
import { appendManifest } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest.js';
import { publish } from '../lake/publish.js';
import type { PartitionPlan } from '../task.js';
import { SIDECAR } from '../venue/keys.js';
import type { ReceivedObject } from './csv-input.js';
import { objectLine } from './commit.js';
import type { PartitionWriter, WriterContext } from './partition-writer.js';

export function createZipWriter(context: WriterContext): PartitionWriter {
  return {
    prepare: (plan) => Promise.resolve(plan),
    write: async (plan, received) => {
      await mkdir(context.paths.staging, { recursive: true });
      const at = new Date(context.clock.now()).toISOString();
      const lines: ObjectLine[] = [];
      for (const object of received) lines.push(await keep(context, plan, object, at));
      const folder = join(context.paths.root, seriesFolder(context.venue.name, plan.series));
      if (lines.length > 0) {
        await mkdir(folder, { recursive: true });
        await context.serialize(folder, () => appendManifest(folder, lines));
      }
      return {
        written: new Map(received.map(({ object }) => [object.key, {}])),
        failed: new Map(),
        files: received.length,
        bytes: received.reduce((sum, { zipBytes }) => sum + zipBytes, 0),
        duplicatesAcross: 0,
      };
    },
  };
}

async function keep(
  context: WriterContext,
  plan: PartitionPlan,
  received: ReceivedObject,
  at: string,
): Promise<ObjectLine> {
  const file = keyFile(received.object.key);
  const target = join(context.paths.root, file);
  // The sidecar first: a zip is never seen without the digest that vouches for it.
  if (received.verified === 'sidecar') {
    const name = received.object.key.slice(received.object.key.lastIndexOf('/') + 1);
    const bytes = Buffer.from(`${received.sha256}  ${name}\n`);
    await publishBody(context, { kind: 'memory', bytes }, `${target}${SIDECAR}`);
  }
  await publishBody(context, received.zip, target);
  return {
    ...objectLine(received, plan, at, context.tool),
    file,
    fileBytes: bodySize(received.zip),
    fileSha256: received.sha256,
  };
}

async function publishBody(context: WriterContext, body: Body, target: string): Promise<void> {
  const path = join(context.paths.staging, `${randomUUID()}.partial`);
  try {
    if (body.kind === 'file') {
      await copyFile(body.path, path);
    } else {
      const file = await open(path, 'w');
      try {
        await file.writeFile(body.bytes);
      } finally {
        await file.close();
      }
    }
    await publish(path, target);
  } finally {
    await rm(path, { force: true });
  }
}
