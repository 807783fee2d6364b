/** A finished file becomes part of the lake: published, then remembered. */
import { join, relative, sep } from 'node:path';
import { monthOf, periodText } from '../calendar.js';
import { appendManifest, heldRevision, isFromRest } from '../lake/manifest.js';
import type { Held, ManifestLine, ObjectLine } from '../lake/manifest.js';
import { fileSize, publishAll, removeStaged } from '../lake/publish.js';
import { quarantine } from '../lake/quarantine.js';
import type { FileFacts } from '../lake/publish.js';
import { commitWithRedo } from '../lake/redo.js';
import type { PartitionPlan, Revision } from '../task.js';
import type { ConversionResult } from './convert.js';
import type { ReceivedObject } from './csv-input.js';
import type { HeldFile } from './held-file.js';
import { keepUnknown } from './keep-unknown.js';
import type { WriterContext } from './writer.js';

/** One file that is ready to appear. */
export interface MadeFile {
  readonly staged: string;
  /** Relative to the series' folder. */
  readonly file: string;
  readonly facts: FileFacts;
  readonly result: ConversionResult;
}

export interface Commit {
  readonly held: HeldFile;
  readonly made: readonly MadeFile[];
  readonly received: readonly ReceivedObject[];
  /** Files that these replace as a whole. */
  readonly dead: readonly string[];
  /** Objects that were in the file and are not in it any more. */
  readonly lost: readonly ObjectLine[];
}

/** The manifest comes last: nothing is held without being there. Answers for the staged files from here on. */
export async function commit(context: WriterContext, plan: PartitionPlan, commitment: Commit): Promise<void> {
  const { held, made, dead } = commitment;
  const files = made.map(({ file }) => file);
  const unknown = await keepUnknown(context, plan, held, { received: commitment.received, files });
  await keepLost(context, commitment);
  const publications = made.map(({ staged, file }) => ({ staged, target: join(held.folder, file) }));
  const lines = [...unknown, ...linesOf(context, plan, commitment)];
  // A file that is not what its manifest says is made anew from its objects: what REST had may be gone by then.
  const isLast =
    held.inFile.some(isFromRest) || commitment.received.some(({ verified }) => verified === 'rest');
  if (dead.length === 0 && !isLast) {
    try {
      await publishAll(publications);
    } finally {
      await removeStaged(publications);
    }
    await appendManifest(held.folder, lines);
    return;
  }
  const deadPaths = dead.map((file) => join(held.folder, file));
  await commitWithRedo(context.paths, { seriesFolder: held.folder, publications, dead: deadPaths, lines });
}

/** A damaged file may still have what REST has no more: it is kept beside the lake, for whoever can read it. */
async function keepLost({ paths, clock }: WriterContext, { held, lost }: Commit): Promise<void> {
  const size = await fileSize(held.path);
  if (size === undefined || !lost.some(isFromRest)) return;
  const stamp = new Date(clock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const place = relative(paths.root, held.folder).replaceAll(sep, '/');
  const periods = lost.map(({ period }) => period).join(', ');
  const cause = `REST has ${periods} no more, and this file is not what its manifest says`;
  const [name = '', ending = ''] = held.file.split('.');
  await quarantine(
    paths,
    `${place}/${name}-${stamp}.${ending}`,
    { kind: 'file', path: held.path, size },
    cause,
  );
}

function linesOf(context: WriterContext, plan: PartitionPlan, commitment: Commit): ManifestLine[] {
  const at = new Date(context.clock.now()).toISOString();
  const lines: ManifestLine[] = commitment.lost.map((line) => ({
    v: 1,
    kind: 'dropped',
    key: line.key,
    format: plan.settings.format,
    at,
  }));
  for (const { file, facts, result } of commitment.made) {
    for (const received of commitment.received) {
      const written = result.written.get(received.object.key);
      if (written === undefined) continue;
      const inFile = { file, fileBytes: facts.bytes, fileSha256: facts.sha256, fileRows: result.rows };
      const replaces = replacedRevision(commitment.held.held, received);
      lines.push({
        ...objectLine(received, plan, at, context.tool),
        ...(replaces === undefined ? {} : { replaces }),
        ...written,
        ...inFile,
      });
    }
  }
  return lines;
}

/** What is held of the same object with other bytes. */
export function replacedRevision(
  held: Held,
  { object: { key, period }, sha256 }: ReceivedObject,
): Revision | undefined {
  const line = period.cadence === 'daily' ? held.ofDay(period.from) : held.ofMonth(monthOf(period.from));
  if (line?.key !== key || line.sha256 === sha256 || isFromRest(line)) return undefined;
  return heldRevision(line);
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
    ...(received.staleSidecar === undefined ? {} : { staleSidecar: received.staleSidecar }),
    ...(object.rest?.open === true ? { open: true } : {}),
    ...(object.rest?.insteadOf === undefined ? {} : { insteadOf: object.rest.insteadOf }),
    settings: plan.settings,
    at,
    tool,
  };
}
