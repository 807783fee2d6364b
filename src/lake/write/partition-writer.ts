/** Writes one partition file: convert, read back, publish, append to the manifest. Guards prevent that held rows are lost, or stored twice. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { dayPeriod, parsePeriod } from '../../model/calendar.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import { areDisjoint, isFromRest, revisionOf } from '../../model/manifest-line.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { seriesName } from '../../model/task.js';
import type { Format, PartitionPlan } from '../../model/task.js';
import { backingOf, withoutConflict } from '../../files/backing.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import type { ObjectFacts } from '../../convert/conversion.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { expectedRows } from '../../convert/row-times.js';
import type { HeldObjects } from '../held-objects.js';
import { seriesFolder } from '../layout.js';
import { repeatLine } from '../undone-commits.js';
import { commit, replacedRevision } from './commit.js';
import type { MadeFile } from './commit.js';
import {
  completePlan,
  lostLines,
  overlappedFiles,
  overlaps,
  readExistingFile,
  supersededFiles,
} from './existing-file.js';
import type { ExistingFile } from './existing-file.js';
import { datasetSpec, makeFile, sessionSize, splitIntoParts } from './make-file.js';
import type {
  Missing,
  PartitionWriter,
  ShorterRevision,
  WriteResult,
  WriterContext,
  WrittenObject,
} from './writer.js';

export function createPartitionWriter(context: WriterContext): PartitionWriter {
  return {
    prepare: (plan) =>
      withoutConflict(
        () => completePlan(context, plan),
        () => context.manifests.reopen(folderOf(context, plan)),
      ),
    // Serialized per file, because its content is read first and then replaced completely.
    write: (plan, received, missing) =>
      context.serialize(`${seriesName(plan.series)} ${plan.label}`, () =>
        publishedOrFailed(context, plan, received, () => writeInto(context, plan, received, missing)),
      ),
  };
}

/** Writes the received objects. If some are rejected, before or after the conversion, writes only the others (`writeOthers`). */
async function writeInto(
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  missing: Missing,
): Promise<WriteResult> {
  const periods = received.map(({ object }) => object.period);
  const existing = await readExistingFile(context, plan, periods);
  if (received.length === 0) return writeNothing(context, plan, existing, missing);
  const input = { existing, received, missing };
  const stillHeld = keysStillHeld(existing, missing);
  const interleaved = findInterleaved(existing, received, missing);
  if (interleaved.size > 0) return writeOthers(context, plan, input, interleaved);
  const refusal = guardWrite(plan, existing, received, missing);
  if (refusal !== undefined) return { ...refusal, stillHeld };
  const done = await convertAndCommit(context, plan, input);
  if (!('brokenRevisions' in done)) return done;
  return writeOthers(context, plan, input, done.brokenRevisions, done.shorter);
}

/** Revisions that cannot replace held rows: those that cannot be converted, with their errors, and those that lack held rows. */
interface RejectedRevisions {
  readonly brokenRevisions: Map<string, CryptodlError>;
  readonly shorter: readonly ShorterRevision[];
}

/** Writes the objects, or resolves with rejected ones and writes nothing. Its session of DuckDB is closed then: the others need one too. */
async function convertAndCommit(
  context: WriterContext,
  plan: PartitionPlan,
  { existing, received, missing }: WriteInput,
): Promise<WriteResult | RejectedRevisions> {
  const stillHeld = keysStillHeld(existing, missing);
  const unchanged = plan.rebuild === undefined ? { stillHeld } : {};
  const session = await context.engine.session(sessionSize(received, existing));
  const made: MadeFile[] = [];
  const failed = new Map<string, CryptodlError>();
  try {
    for (const part of splitIntoParts(plan, received)) {
      const file = await makeFile(session, context, plan, { ...part, existing });
      for (const [key, error] of file.result.failed) failed.set(key, error);
      if (file.result.rows > 0) made.push(file);
    }
    const sound = received.filter(({ object }) => !failed.has(object.key));
    const brokenRevisions = [...failed].filter(([key]) => replacedBy(existing, received, key).length > 0);
    const shorter = context.acceptsShorter ? [] : shorterOf(existing, sound, made);
    if (brokenRevisions.length > 0 || shorter.length > 0)
      return { brokenRevisions: new Map(brokenRevisions), shorter };
    const laterRefusal = guardWrite(plan, existing, sound, new Map([...missing, ...failed]));
    if (laterRefusal !== undefined)
      return { ...laterRefusal, failed: new Map([...laterRefusal.failed, ...failed]), stillHeld };
    if (made.length === 0) return { ...emptyResult(failed), ...unchanged };
    // The commit removes these staged files, or leaves them for the run that completes it.
    const files = made.splice(0);
    const gone = findSuperseded(plan, existing, sound);
    // Before the commit, because the commit replaces the held lines.
    const result = summarize(plan, datasetSpec(context, plan), { existing, received, made: files, failed });
    const quarantinePath = await context.serialize(existing.folder, () =>
      context.timed('commit', { plan }, () =>
        commit(context, plan, { existing, made: files, received, ...gone }),
      ),
    );
    if (plan.rebuild === undefined)
      return { ...result, stillHeld, quarantined: quarantinePath === undefined ? 0 : 1 };
    return withLost(result, gone.lost, missing, quarantinePath);
  } catch (error) {
    // These errors concern only this partition: it is too large for memory, or it differs from its manifest.
    const known = toCryptodlError(error);
    if (known.code !== 'out-of-memory' && known.code !== 'partition-incomplete') throw error;
    return { ...emptyResult(new Map([...failAll(received, known).failed, ...failed])), ...unchanged };
  } finally {
    session.close();
    await Promise.all(made.map(({ staged }) => rm(staged, { force: true })));
  }
}

function keysStillHeld({ inFile }: ExistingFile, missing: Missing): ReadonlySet<string> {
  return new Set(inFile.map(({ key }) => key).filter((key) => missing.get(key) === 'absent'));
}

function replacedBy(
  { replaced }: ExistingFile,
  received: readonly ReceivedObject[],
  key: string,
): readonly ObjectLine[] {
  const ofKey = received.filter(({ object }) => object.key === key);
  return replaced.filter((line) => ofKey.some(({ object }) => overlaps(line, object.period)));
}

interface WriteInput {
  readonly existing: ExistingFile;
  readonly received: readonly ReceivedObject[];
  readonly missing: Missing;
}

/** Writes the partition without the rejected objects, whose held rows stay. A rejected object that equals the held one is no failure. */
async function writeOthers(
  context: WriterContext,
  plan: PartitionPlan,
  { existing, received, missing }: WriteInput,
  rejected: ReadonlyMap<string, CryptodlError>,
  shorter: readonly ShorterRevision[] = [],
): Promise<WriteResult> {
  const isShorter = new Set(shorter.map((each) => each.received));
  const others = received.filter((each) => !rejected.has(each.object.key) && !isShorter.has(each));
  const result = await writeInto(context, plan, others, new Map([...missing, ...rejected]));
  const failed = [...rejected].filter(([key]) => {
    const digest = received.find(({ object }) => object.key === key)?.sha256;
    return replacedBy(existing, received, key).some((line) => line.sha256 !== digest);
  });
  if (shorter.length > 0)
    await recordShorterRevisions(context, existing.folder, plan.settings.format, shorter);
  const byKey = shorter.map((each) => [each.received.object.key, each] as const);
  return {
    ...result,
    failed: new Map([...failed, ...result.failed]),
    shorter: new Map([...byKey, ...(result.shorter ?? [])]),
  };
}

function shorterOf(
  existing: ExistingFile,
  received: readonly ReceivedObject[],
  made: readonly MadeFile[],
): ShorterRevision[] {
  return received.flatMap((each) => {
    const { key } = each.object;
    const line = existing.replaced.find((candidate) => isPredecessor(candidate, each));
    const rows = factsOf(made, key)?.rows;
    const lackedRows = made.reduce((sum, { result }) => sum + (result.lacked.get(key) ?? 0), 0);
    return shorterRevision(line, each, { rows, keptRows: line?.rows, lackedRows });
  });
}

/** Whether the line is an earlier revision of the object, or rows of REST of the same period. */
function isPredecessor(line: ObjectLine, { object }: ReceivedObject): boolean {
  if (!isFromRest(line)) return line.key === object.key;
  return (
    line.cadence === object.period.cadence &&
    parsePeriod(line.cadence, line.period)?.from === object.period.from
  );
}

function factsOf(made: readonly MadeFile[], key: string): ObjectFacts | undefined {
  return made.map(({ result }) => result.written.get(key)).find((facts) => facts !== undefined);
}

/** Moves a damaged file to the quarantine if every object in it is absent. Otherwise changes nothing. */
async function writeNothing(
  context: WriterContext,
  plan: PartitionPlan,
  existing: ExistingFile,
  missing: Missing,
): Promise<WriteResult> {
  const none = emptyResult(new Map());
  const stillHeld = keysStillHeld(existing, missing);
  if (plan.rebuild !== 'damaged') return { ...none, stillHeld };
  const lost = existing.inFile;
  if (lost.length === 0 || stillHeld.size < lost.length) return none;
  const quarantinePath = await context.serialize(existing.folder, () =>
    context.timed('commit', { plan }, () =>
      commit(context, plan, { existing, made: [], received: [], dead: [], lost }),
    ),
  );
  return withLost(none, lost, missing, quarantinePath);
}

/** Reports lost objects that the archive or REST no longer has. Other lost objects can be fetched by a later run. */
function withLost(
  result: WriteResult,
  lost: readonly ObjectLine[],
  missing: Missing,
  quarantinePath: string | undefined,
): WriteResult {
  const failed = new Map(result.failed);
  for (const { key, file } of lost)
    if (missing.get(key) === 'absent') failed.set(key, lostError(file, key, quarantinePath));
  return { ...result, failed, quarantined: quarantinePath === undefined ? 0 : 1 };
}

interface Written extends Pick<WriteInput, 'existing' | 'received'> {
  readonly made: readonly MadeFile[];
  readonly failed: ReadonlyMap<string, CryptodlError>;
}

function summarize(
  plan: PartitionPlan,
  spec: DatasetSpec,
  { existing, received, made, failed }: Written,
): WriteResult {
  const written = new Map<string, WrittenObject>();
  for (const each of received) {
    const { object } = each;
    const facts = factsOf(made, object.key);
    if (facts === undefined) continue;
    const expected = facts.expectedRows ?? expectedRows(spec, plan.series, object);
    const replaces = replacedRevision(existing.objects, each);
    written.set(object.key, {
      ...facts,
      ...(expected === undefined ? {} : { expectedRows: expected }),
      ...(replaces === undefined ? {} : { replaces }),
    });
  }
  const sum = (value: (file: MadeFile) => number): number =>
    made.reduce((total, file) => total + value(file), 0);
  return {
    written,
    failed,
    files: made.length,
    bytes: sum(({ facts }) => facts.bytes),
    duplicatesAcross: sum(({ result }) => result.duplicatesAcross),
    overlaps: made.flatMap(({ result }) => result.overlap ?? []),
  };
}

// The guards: they prevent writes that would lose held rows or store rows twice.

/** Files and objects that the write removes from the lake. */
function findSuperseded(
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
function guardWrite(
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
function findInterleaved(
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

function failAll(received: readonly ReceivedObject[], error: CryptodlError): WriteResult {
  return emptyResult(new Map(received.map(({ object }) => [object.key, error])));
}

function emptyResult(failed: ReadonlyMap<string, CryptodlError>): WriteResult {
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

function folderOf({ paths, exchange }: WriterContext, { series }: PartitionPlan): string {
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
