/** Commits the staged files of a partition to the lake, with their manifest lines. */
import { join } from 'node:path';
import { moveToQuarantine } from '../quarantine.js';
import { seriesFolder } from '../layout.js';
import { fileFacts, fileSize, type FileFacts } from '../../files/file-facts.js';
import { commitFiles } from '../commit-files.js';
import type { PartitionPlan, Revision } from '../../model/task.js';
import { readFooter } from '../../convert/parquet-footer.js';
import type { ExistingFile } from './existing-file.js';
import { fieldsOf, isRecord, parseJson } from '../../text/json.js';
import type { WriterContext } from './writer.js';
import { daysWithin, periodText } from '../../model/calendar.js';
import { revisionOf, isFromRest, type ManifestLine, type ObjectLine } from '../../model/manifest-line.js';
import { droppedLine, linesOfRemoved } from '../undone-commits.js';
import type { HeldObjects } from '../held-objects.js';
import { hasDays } from '../../exchange/keys.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import type { ConversionResult } from '../../convert/conversion.js';
import type { ReceivedObject } from '../../convert/csv-input.js';

/** A staged file, read back. */
export interface MadeFile {
  readonly staged: string;
  /** Relative to the series' folder. */
  readonly file: string;
  readonly facts: FileFacts;
  readonly result: ConversionResult;
}

/** What a commit adds, replaces and removes. */
export interface Commit {
  readonly existing: ExistingFile;
  readonly made: readonly MadeFile[];
  readonly received: readonly ReceivedObject[];
  /** Files that the new files replace completely. */
  readonly dead: readonly string[];
  /** Lines of objects that the new files no longer contain. */
  readonly lost: readonly ObjectLine[];
}

/**
 * Appends to the manifest and gives the staged files their names (`commitFiles`). Resolves with the quarantine
 * path of an existing file whose rows were not all written again. Rejects with `locked`, and writes nothing, when another run has taken over the lake, and with `disk` when the path of the
 * series contains a symbolic link.
 */
export async function commit(
  context: WriterContext,
  plan: PartitionPlan,
  commitment: Commit,
): Promise<string | undefined> {
  const { existing, made, dead } = commitment;
  await context.lock?.confirm();
  // Checked again: a symbolic link may have replaced a folder since the rows were read.
  await context.paths.folder(seriesFolder(context.exchange.name, plan.series));
  const quarantinePath =
    (await quarantineUnlisted(context, plan, commitment)) ?? (await quarantineDamaged(context, commitment));
  const publications = made.map(({ staged, file }) => ({ staged, target: join(existing.folder, file) }));
  await commitFiles(context, {
    seriesFolder: existing.folder,
    publications,
    dead: dead.map((file) => join(existing.folder, file)),
    lines: manifestLines(context, plan, commitment),
  });
  return quarantinePath;
}

function manifestLines(
  context: WriterContext,
  plan: PartitionPlan,
  { existing, made, received: all, dead, lost }: Commit,
): ManifestLine[] {
  const at = new Date(context.clock.now()).toISOString();
  const removed = new Set([...dead, ...lost.map(({ file }) => file)]);
  const spec = findDataset(context.exchange, plan.series.market, plan.series.dataset);
  const lines: ManifestLine[] = [
    ...linesOfRemoved(existing.objects, removed, at),
    ...lost.map((line) => droppedLine(line, plan.settings.format, at)),
  ];
  for (const { file, facts, result } of made) {
    const fileBefore = existing.objects.fileBefore(file);
    for (const received of all) {
      const written = result.written.get(received.object.key);
      if (written === undefined) continue;
      const { expectedRows: _, ...ofObject } = written;
      const inFile = { file, fileBytes: facts.bytes, fileSha256: facts.sha256, fileRows: result.rows };
      // Daily objects may have days that the monthly object lacks. A later run then requests these days.
      const mayHaveMoreDays =
        hasDays(spec, plan, received.object) &&
        daysWithin(received.object.period, written.gaps, context.exchange).length > 0;
      lines.push({
        ...objectLine(received, plan, existing.objects, { at, tool: context.tool }),
        ...(mayHaveMoreDays ? { daysPending: true } : {}),
        ...ofObject,
        ...inFile,
        ...(fileBefore === undefined ? {} : { fileBefore }),
      });
    }
  }
  return lines;
}

/** The manifest line of the same archive object. */
export function heldLine(
  held: HeldObjects,
  { key, period }: ReceivedObject['object'],
): ObjectLine | undefined {
  const line = held.of(period);
  return line?.key === key ? line : undefined;
}

/** The held revision of the same archive object, if its bytes differ. */
export function replacedRevision(
  held: HeldObjects,
  { object, sha256 }: ReceivedObject,
): Revision | undefined {
  const line = heldLine(held, object);
  return line === undefined || line.sha256 === sha256 || isFromRest(line) ? undefined : revisionOf(line);
}

/** The manifest line of a received object, without the facts of its rows and of its file. */
export function objectLine(
  received: ReceivedObject,
  plan: PartitionPlan,
  held: HeldObjects,
  { at, tool }: Pick<ObjectLine, 'at' | 'tool'>,
): Omit<ObjectLine, 'file' | 'fileBytes' | 'fileSha256'> {
  const { object } = received;
  const replaces = replacedRevision(held, received);
  return {
    v: 1,
    kind: 'object',
    key: object.key,
    cadence: object.period.cadence,
    period: periodText(object.period),
    ...(received.etag === undefined ? {} : { etag: received.etag }),
    ...(received.lastModified === undefined ? {} : { lastModified: received.lastModified }),
    bytes: received.bytes,
    sha256: received.sha256,
    verified: received.verified,
    ...(received.staleSidecar === undefined ? {} : { staleSidecar: received.staleSidecar }),
    ...(object.rest?.open === true ? { open: true } : {}),
    ...(object.rest?.archiveFailed === undefined ? {} : { archiveFailed: object.rest.archiveFailed }),
    ...(object.rest?.insteadOf === undefined ? {} : { insteadOf: object.rest.insteadOf }),
    settings: plan.settings,
    at,
    tool,
    ...(replaces === undefined ? {} : { replaces }),
  };
}

/** Moves a damaged file to the quarantine: it may contain rows that cannot be fetched again. */
async function quarantineDamaged(
  { paths, clock }: WriterContext,
  { existing, lost }: Commit,
): Promise<string | undefined> {
  if (lost.length === 0) return undefined;
  const periods = lost.map(({ period }) => period).join(', ');
  const cause = `${periods} could not be fetched again, and this file does not match its manifest`;
  return moveToQuarantine(paths, existing.path, cause, clock.now());
}

/**
 * Moves a file that the new one replaces to the quarantine, if it may have rows that the new file lacks: rows of another object or
 * revision, or more rows. A run that was killed before its manifest lines leaves a file whose objects the new file has.
 */
async function quarantineUnlisted(
  context: WriterContext,
  plan: PartitionPlan,
  { existing, made, received }: Commit,
): Promise<string | undefined> {
  const isDoubtful = existing.inFile.length === 0 || plan.rebuild === 'damaged';
  const replacing = made.find(({ file }) => file === existing.file);
  if (!isDoubtful || replacing === undefined || (await fileSize(existing.path)) === undefined)
    return undefined;
  const { rows, objects } = await contentOf(existing);
  // A damaged file may hold the revision that its lines name.
  const known = new Set([
    ...existing.inFile.map(({ key, sha256 }) => `${sha256} ${key}`),
    ...received.map(({ object: { key }, sha256 }) => `${sha256} ${key}`),
  ]);
  const isCovered =
    objects.length === 0
      ? await isReplaced(existing, replacing)
      : rows <= replacing.result.rows &&
        objects.every(({ key, sha256 }) => known.has(`${String(sha256)} ${String(key)}`));
  if (isCovered) return undefined;
  const cause = 'no manifest line lists all rows of this file';
  return moveToQuarantine(context.paths, existing.path, cause, context.clock.now());
}

/** Whether a file without provenance has no rows beyond those of the new file, as far as its size or its digest tells. */
async function isReplaced(
  { inFile, objects, file, path }: ExistingFile,
  { facts }: MadeFile,
): Promise<boolean> {
  const size = await fileSize(path);
  if (size === facts.bytes && (await fileFacts(path)).sha256 === facts.sha256) return true;
  return inFile.length > 0 && (size ?? 0) <= (objects.lastOfFile(file)?.fileBytes ?? 0);
}

/** The rows of a Parquet file, and the objects that its metadata names; none for any other file. */
async function contentOf({ path }: ExistingFile) {
  // A file that is not Parquet has no footer.
  const { rows, entry = '' } = await readFooter(path).catch(() => ({ rows: 0, entry: undefined }));
  const { objects } = fieldsOf(parseJson(entry));
  // Otherwise another program has written a metadata entry of the same name.
  return { rows, objects: Array.isArray(objects) && objects.every(isRecord) ? objects : [] };
}
