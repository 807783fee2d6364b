/** Writes one partition file: convert, read back, publish, append to the manifest. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { toCryptodlError, type CryptodlError } from '../../model/errors.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { seriesName, type PartitionPlan } from '../../model/task.js';
import { backingOf, withoutConflict } from '../../files/backing.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { seriesFolder } from '../layout.js';
import { commit, replacedRevision, type Commit, type MadeFile } from './commit.js';
import { completePlan } from './complete-plan.js';
import { interleavedRevisions, readExistingFile, refusal, replacedBy } from './existing-file.js';
import { stillHeld, superseded, without, type PlannedWrite } from './existing-file.js';
import { datasetSpec, makeFile, connectionSize, splitIntoParts } from './make-file.js';
import { isPredecessor, recordShorterRevisions, shorterRevision } from './shorter-revisions.js';
import { expectedRows } from '../../convert/expected-rows.js';
import type { ObjectFacts } from '../../convert/conversion.js';
import { emptyResult, failAll, lostError } from './writer.js';
import type {
  PartitionWriter,
  ShorterRevision,
  WriteResult,
  WriterContext,
  WrittenObject,
} from './writer.js';
import { writeZips } from './zip-writer.js';

/** Keeps zips as they are, and converts the rows of all other formats. */
export function createPartitionWriter(context: WriterContext): PartitionWriter {
  return {
    prepare: (plan) =>
      plan.settings.format === 'zip'
        ? Promise.resolve(plan)
        : withoutConflict(
            () => completePlan(context, plan),
            () => backingOf(context.paths.root)?.reopenSeries(folderOf(context, plan)),
          ),
    write: (plan, received, missing) => {
      const publish = (write: () => Promise<WriteResult>): Promise<WriteResult> =>
        publishedOrFailed(context, plan, received, write);
      if (plan.settings.format === 'zip') return publish(() => writeZips(context, plan, received, missing));
      // Serialized per file, because its content is read first and then replaced completely.
      return context.serialize(`${seriesName(plan.series)} ${plan.label}`, () =>
        publish(() => writeObjects(context, { plan, received, missing })),
      );
    },
  };
}

/** Resolves when the lake in a bucket has the objects too. They fail with `lake-conflict` if another writer has changed the series. */
async function publishedOrFailed(
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  write: () => Promise<WriteResult>,
): Promise<WriteResult> {
  const folder = folderOf(context, plan);
  const backing = backingOf(folder);
  try {
    const result = await (backing?.using(folder, write) ?? write());
    await context.timed('commit', { plan }, async () => backing?.published(folder));
    return result;
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.code !== 'lake-conflict') throw error;
    await backing?.reopenSeries(folder);
    return failAll(received, known);
  }
}

const folderOf = ({ paths, exchange }: WriterContext, { series }: PartitionPlan): string =>
  join(paths.root, seriesFolder(exchange.name, series));

/** Revisions that cannot replace held rows: those that cannot be converted, with their errors, and those that lack held rows. */
interface RejectedRevisions {
  readonly brokenRevisions: ReadonlyMap<string, CryptodlError>;
  readonly shorter: readonly ShorterRevision[];
}

/** Writes the received objects. If some are rejected, before or after the conversion, writes only the others. */
async function writeObjects(
  context: WriterContext,
  given: Omit<PlannedWrite, 'existing'>,
): Promise<WriteResult> {
  const periods = given.received.map(({ object }) => object.period);
  const write = { ...given, existing: await readExistingFile(context, given.plan, periods) };
  if (given.received.length === 0) return writeNothing(context, write);
  const interleaved = interleavedRevisions(write);
  if (interleaved.size > 0) return writeOthers(context, write, { brokenRevisions: interleaved, shorter: [] });
  const done = refusal(write) ?? (await convertAndCommit(context, write));
  return 'brokenRevisions' in done ? writeOthers(context, write, done) : done;
}

/** Writes the objects, or resolves with rejected ones and writes nothing. Its connection of DuckDB is closed then: the others need one too. */
async function convertAndCommit(
  context: WriterContext,
  write: PlannedWrite,
): Promise<WriteResult | RejectedRevisions> {
  const { plan, existing, received } = write;
  const unchanged = plan.rebuild === undefined ? { stillHeld: stillHeld(write) } : {};
  const duckdb = await context.engine.connect(connectionSize(received, existing));
  const made: MadeFile[] = [];
  const failed = new Map<string, CryptodlError>();
  try {
    for (const part of splitIntoParts(plan, received)) {
      const file = await makeFile(duckdb, context, plan, { ...part, existing });
      for (const [key, error] of file.result.failed) failed.set(key, error);
      if (file.result.rows > 0) made.push(file);
    }
    const sound = without(write, failed);
    const brokenRevisions = new Map([...failed].filter(([key]) => replacedBy(write, key).length > 0));
    const shorter = context.acceptsShorter ? [] : shorterRevisions(sound, made);
    if (brokenRevisions.size > 0 || shorter.length > 0) return { brokenRevisions, shorter };
    const refused = refusal(sound);
    if (refused !== undefined) return { ...refused, failed: new Map([...refused.failed, ...failed]) };
    if (made.length === 0) return { ...emptyResult(failed), ...unchanged };
    // The commit removes these staged files, or leaves them for the run that completes it.
    const files = made.splice(0);
    const gone = superseded(sound);
    const result = { ...resultOf(context, write, files, failed), ...unchanged };
    const quarantinePath = await commitWrite(context, write, { made: files, received, ...gone });
    return withLost(write, result, gone.lost, quarantinePath);
  } catch (error) {
    // These errors concern only this partition: it is too large for memory, or it differs from its manifest.
    const known = toCryptodlError(error);
    if (known.code !== 'out-of-memory' && known.code !== 'partition-incomplete') throw error;
    return { ...emptyResult(new Map([...failAll(received, known).failed, ...failed])), ...unchanged };
  } finally {
    duckdb.close();
    await Promise.all(made.map(({ staged }) => rm(staged, { force: true })));
  }
}

function commitWrite(
  context: WriterContext,
  { plan, existing }: PlannedWrite,
  commitment: Omit<Commit, 'existing'>,
): Promise<string | undefined> {
  return context.serialize(existing.folder, () =>
    context.timed('commit', { plan }, () => commit(context, plan, { existing, ...commitment })),
  );
}

/** The result of a write that makes these files. Call it before their commit, because the commit replaces the held lines. */
function resultOf(
  context: WriterContext,
  { plan, existing, received }: PlannedWrite,
  made: readonly MadeFile[],
  failed: ReadonlyMap<string, CryptodlError>,
): WriteResult {
  const spec = datasetSpec(context, plan);
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

const factsOf = (made: readonly MadeFile[], key: string): ObjectFacts | undefined =>
  made.map(({ result }) => result.written.get(key)).find((facts) => facts !== undefined);

function shorterRevisions(
  { existing, received }: PlannedWrite,
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

/** Writes the partition without the rejected objects, whose held rows stay. A rejected object that equals the held one is no failure. */
async function writeOthers(
  context: WriterContext,
  write: PlannedWrite,
  { brokenRevisions: rejected, shorter }: RejectedRevisions,
): Promise<WriteResult> {
  const { plan, existing, received } = write;
  const isShorter = new Set(shorter.map((each) => each.received));
  const { received: sound, missing } = without(write, rejected);
  const others = sound.filter((each) => !isShorter.has(each));
  const result = await writeObjects(context, { plan, received: others, missing });
  const failed = [...rejected].filter(([key]) => {
    const digest = received.find(({ object }) => object.key === key)?.sha256;
    return replacedBy(write, key).some((line) => line.sha256 !== digest);
  });
  const byKey = await recordShorterRevisions(context, existing.folder, plan.settings.format, shorter);
  return {
    ...result,
    failed: new Map([...failed, ...result.failed]),
    shorter: new Map([...byKey, ...(result.shorter ?? [])]),
  };
}

/** Moves a damaged file to the quarantine if every object in it is absent. Otherwise changes nothing. */
async function writeNothing(context: WriterContext, write: PlannedWrite): Promise<WriteResult> {
  const none = emptyResult(new Map());
  const held = stillHeld(write);
  if (write.plan.rebuild !== 'damaged') return { ...none, stillHeld: held };
  const lost = write.existing.inFile;
  if (lost.length === 0 || held.size < lost.length) return none;
  const quarantinePath = await commitWrite(context, write, { made: [], received: [], dead: [], lost });
  return withLost(write, none, lost, quarantinePath);
}

/** Reports lost objects that the archive or REST no longer has. Other lost objects can be fetched by a later run. */
function withLost(
  { missing }: PlannedWrite,
  result: WriteResult,
  lost: readonly ObjectLine[],
  quarantinePath: string | undefined,
): WriteResult {
  const failed = new Map(result.failed);
  for (const { key, file } of lost)
    if (missing.get(key) === 'absent') failed.set(key, lostError(file, key, quarantinePath));
  return { ...result, failed, quarantined: quarantinePath === undefined ? 0 : 1 };
}
