/** Writes one partition file: convert, read back, publish, append to the manifest. */
import { rm } from 'node:fs/promises';
import { parsePeriod } from '../../model/calendar.js';
import { withoutConflict } from '../../files/backing.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import { isFromRest } from '../../model/manifest-line.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { seriesName } from '../../model/task.js';
import type { PartitionPlan } from '../../model/task.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { commit, replacedRevision } from './commit.js';
import type { MadeFile } from './commit.js';
import type { ObjectFacts } from '../../convert/conversion.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { expectedRows } from '../../convert/row-times.js';
import {
  emptyResult,
  failAll,
  findInterleaved,
  findSuperseded,
  guardWrite,
  lostError,
  folderOf,
  publishedOrFailed,
  recordShorterRevisions,
  shorterRevision,
} from './partition-guards.js';
import { completePlan, overlaps, readExistingFile } from './existing-file.js';
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
