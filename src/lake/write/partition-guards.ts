/** Prevents writes that would lose held rows or store rows twice. */
import { dayPeriod } from '../../model/calendar.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import { areDisjoint, revisionOf } from '../../model/manifest-line.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import type { Format, PartitionPlan } from '../../model/task.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { lostLines, overlappedFiles, overlaps, supersededFiles } from './existing-file.js';
import type { ExistingFile } from './existing-file.js';
import type { Missing, ShorterRevision, WriteResult, WriterContext } from './writer.js';
import { join } from 'node:path';
import { backingOf } from '../../files/backing.js';
import { seriesFolder } from '../layout.js';
import type { HeldObjects } from '../held-objects.js';
import { repeatLine } from '../undone-commits.js';

/** Files and objects that the write removes from the lake. */
export function findSuperseded(
  plan: PartitionPlan,
  existing: ExistingFile,
  received: readonly ReceivedObject[],
): { dead: string[]; lost: ObjectLine[] } {
  const periods = [
    ...received.map(({ object }) => object.period),
    ...(plan.emptyDays ?? []).map((day) => dayPeriod(day)),
  ];
  const dead = supersededFiles(existing, periods);
  return { dead: plan.split === true ? [...dead, existing.file] : dead, lost: lostLines(existing, periods) };
}

/** The result of a refused write, if an intact file would lose rows or rows would be stored twice; else undefined. */
export function guardWrite(
  plan: PartitionPlan,
  existing: ExistingFile,
  received: readonly ReceivedObject[],
  missing: Missing,
): WriteResult | undefined {
  const periods = received.map(({ object }) => object.period);
  const { dead, lost } = findSuperseded(plan, existing, received);
  // A zip that is fetched for this job again comes with its next attempt, which may also find the file sound.
  const mayCome = [...missing.values()].some((why) => why !== 'absent' && why.code === 'staged-zip-lost');
  if (lost.length > 0 && (plan.rebuild !== 'damaged' || mayCome))
    return failAll(received, incompleteError(lost, missing));
  const doubled = overlappedFiles(existing, periods).filter((file) => !dead.includes(file));
  if (doubled.length === 0) return undefined;
  const error = new CryptodlError(
    'partition-incomplete',
    `${doubled.join(', ')} also contains other days, so single days of it cannot be written to another file`,
    {
      hint: 'download the whole range with cryptodl vision --force',
    },
  );
  return failAll(received, error);
}

/** Errors, by key, of received objects that cannot replace their held rows, because rows that stay are interleaved with these rows. */
export function findInterleaved(
  existing: ExistingFile,
  received: readonly ReceivedObject[],
  missing: Missing,
): Map<string, CryptodlError> {
  const rejected = new Map<string, CryptodlError>();
  for (const { object } of received) {
    const held = existing.replaced.filter((line) => overlaps(line, object.period));
    const others = existing.kept.filter((line) => held.some((each) => !areDisjoint(line, each)));
    if (others.length > 0) rejected.set(object.key, incompleteError(others, missing));
  }
  return rejected;
}

/** The error for an intact file that would lose rows. Its code depends on the reason for which the lost objects were not received. */
function incompleteError(lost: readonly ObjectLine[], missing: Missing): CryptodlError {
  const keys = lost.map((line) => line.key).join(', ');
  const file = lost[0]?.file ?? '';
  const causes = lost.map((line) => missing.get(line.key));
  const errors = causes.filter((cause) => cause instanceof CryptodlError);
  const cause = errors.find((error) => error.retryable) ?? errors[0];
  if (cause !== undefined || causes.includes(undefined)) {
    const code = cause === undefined || cause.retryable ? 'partition-incomplete' : cause.code;
    const text = `${file} was not changed: ${keys} could not be fetched again`;
    return new CryptodlError(code, text, { cause });
  }
  return new CryptodlError(
    'object-withdrawn',
    `${file} was not changed: the exchange no longer has ${keys}, and only this file has its rows`,
    { hint: 'leave --force out, or download into another --out' },
  );
}

/** The error for an object whose only file is damaged or missing. `quarantinePath`: the damaged file; undefined for a missing one. */
export function lostError(file: string, key: string, quarantinePath: string | undefined): CryptodlError {
  const state = quarantinePath === undefined ? `${file} was missing` : `${file} was damaged`;
  return new CryptodlError(
    'object-withdrawn',
    `${state}, and ${key} cannot be fetched again: its rows are lost`,
    quarantinePath === undefined ? {} : { hint: `the damaged file is kept as ${quarantinePath}` },
  );
}

export function failAll(received: readonly ReceivedObject[], error: CryptodlError): WriteResult {
  return emptyResult(new Map(received.map(({ object }) => [object.key, error])));
}

export function emptyResult(failed: ReadonlyMap<string, CryptodlError>): WriteResult {
  return { written: new Map(), failed, files: 0, bytes: 0, duplicatesAcross: 0, overlaps: [] };
}

// Changes of other writers of a lake in a bucket: a write fails for another try.

/** Resolves when the lake in a bucket has the objects too. They fail with `lake-conflict` if another writer has changed the series. */
export async function publishedOrFailed(
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  write: () => Promise<WriteResult>,
): Promise<WriteResult> {
  const folder = folderOf(context, plan);
  try {
    const result = await (backingOf(folder)?.using(folder, write) ?? write());
    await context.timed('commit', { plan }, () => context.manifests.published(folder));
    return result;
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.code !== 'lake-conflict') throw error;
    await context.manifests.reopen(folder);
    return failAll(received, known);
  }
}

export function folderOf({ paths, exchange }: WriterContext, { series }: PartitionPlan): string {
  return join(paths.root, seriesFolder(exchange.name, series));
}

// Revisions that lack held rows. They are rejected and recorded in the manifest, so that they are not fetched again.

/** The shorter revision; none if the received object is no new revision of the archive, or is not known to lack held rows. */
export function shorterRevision(
  line: ObjectLine | undefined,
  received: ReceivedObject,
  {
    rows,
    keptRows,
    lackedRows = 0,
  }: Readonly<Partial<Record<'rows' | 'keptRows' | 'lackedRows', number | undefined>>>,
): ShorterRevision[] {
  if (line === undefined || line.open === true || received.verified === 'rest') return [];
  if (line.sha256 === received.sha256 || rows === undefined || keptRows === undefined) return [];
  const isShorter = rows < keptRows || lackedRows > 0;
  return isShorter ? [{ received, heldKey: line.key, rows, keptRows, lackedRows }] : [];
}

/** Records the rejected revisions. Rejects on disk errors, and with `locked` when another run has taken over the lake. */
export async function recordShorterRevisions(
  context: Pick<WriterContext, 'clock' | 'serialize' | 'manifests' | 'lock'>,
  folder: string,
  format: Format,
  shorter: readonly ShorterRevision[],
): Promise<void> {
  const at = new Date(context.clock.now()).toISOString();
  await context.serialize(folder, async () => {
    await context.lock?.confirm();
    const { [format]: held } = await context.manifests.of(folder);
    const lines = held.lines();
    const found = shorter.flatMap((each) => {
      const line = lines.find(({ key }) => key === each.heldKey);
      return line === undefined ? [] : [lineWithShorter(held, line, each, at)];
    });
    await context.manifests.append(folder, found);
  });
}

function lineWithShorter(
  held: HeldObjects,
  before: ObjectLine,
  { received, rows }: ShorterRevision,
  at: string,
): ObjectLine {
  const shorter = { ...revisionOf({ ...received, bytes: received.zipBytes, at }), rows };
  return { ...repeatLine(held, before), shorter };
}
