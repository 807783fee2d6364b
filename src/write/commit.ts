/** A finished file becomes part of the lake: published, then remembered. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { periodText } from '../calendar.js';
import { appendManifest, readManifest } from '../lake/manifest.js';
import type { ManifestLine, ObjectLine } from '../lake/manifest.js';
import { publish } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import type { PartitionPlan } from '../task.js';
import type { ConversionResult } from './convert.js';
import type { ReceivedObject } from './csv-input.js';
import { isHeldElsewhere } from './held-file.js';
import type { HeldFile } from './held-file.js';
import type { WriterContext } from './writer.js';

export interface Commit {
  readonly held: HeldFile;
  readonly staged: string;
  readonly facts: FileFacts;
  readonly result: ConversionResult;
  readonly received: readonly ReceivedObject[];
  /** Objects that were in the file and are not in it any more. */
  readonly lost: readonly ObjectLine[];
}

export async function commit(context: WriterContext, plan: PartitionPlan, made: Commit): Promise<void> {
  const { folder, path, file } = made.held;
  await publish(made.staged, path);
  const at = new Date(context.clock.now()).toISOString();
  const lines: ManifestLine[] = made.lost.map((line) => ({
    v: 1,
    kind: 'dropped',
    key: line.key,
    format: plan.settings.format,
    at,
  }));
  const { bytes: fileBytes, sha256: fileSha256 } = made.facts;
  for (const received of made.received) {
    const facts = made.result.written.get(received.object.key);
    if (facts === undefined) continue;
    lines.push({
      ...objectLine(received, plan, at, context.tool),
      ...facts,
      file,
      fileBytes,
      fileSha256,
      fileRows: made.result.rows,
    });
  }
  await appendManifest(folder, lines);
  if (made.received.some(({ object }) => isHeldElsewhere(made.held, object.period)))
    await removeDeadFiles(folder, plan);
}

export function objectLine(
  received: ReceivedObject,
  plan: PartitionPlan,
  at: string,
  tool: string,
): Omit<ObjectLine, 'file' | 'fileBytes' | 'fileSha256'> {
  const { object } = received;
  return {
    v: 1,
    kind: 'object',
    key: object.key,
    cadence: object.period.cadence,
    period: periodText(object.period),
    ...(received.etag === undefined ? {} : { etag: received.etag }),
    ...(received.lastModified === undefined ? {} : { lastModified: received.lastModified }),
    bytes: received.zipBytes,
    sha256: received.sha256,
    verified: received.verified,
    settings: plan.settings,
    at,
    tool,
  };
}

/** A rewritten series leaves files behind whose objects are all in other files now. */
async function removeDeadFiles(folder: string, plan: PartitionPlan): Promise<void> {
  const held = (await readManifest(folder))[plan.settings.format];
  const live = new Set(held.lines().map((line) => line.file));
  const dead = held.files().filter((file) => !live.has(file));
  await Promise.all(dead.map((file) => rm(join(folder, file), { force: true })));
}
