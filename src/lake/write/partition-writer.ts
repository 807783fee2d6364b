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
import type { ObjectFacts } from '../../convert/conversion.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { expectedRows } from '../../convert/expected-rows.js';
import type { HeldObjects } from '../held-objects.js';
import { seriesFolder } from '../layout.js';
import { repeatLine } from '../undone-commits.js';
import { commit, replacedRevision } from './commit.js';
import type { Commit, MadeFile } from './commit.js';
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
        () => reopen(folderOf(context, plan)),
      ),
    // Serialized per file, because its content is read first and then replaced completely.
    write: (plan, received, missing) =>
      context.serialize(`${seriesName(plan.series)} ${plan.label}`, () =>
        publishedOrFailed(context, plan, received, () => writeInto(context, plan, received, missing)),
      ),
  };
}

async function writeInto(
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  missing: Missing,
): Promise<WriteResult> {
  const periods = received.map(({ object }) => object.period);
  const existing = await readExistingFile(context, plan, periods);
  return new PartitionWrite(context, plan, existing, received, missing).run();
}

/** Revisions that cannot replace held rows: those that cannot be converted, with their errors, and those that lack held rows. */
interface RejectedRevisions {
  readonly brokenRevisions: Map<string, CryptodlError>;
  readonly shorter: readonly ShorterRevision[];
}

class PartitionWrite {
  constructor(
    private readonly context: WriterContext,
    private readonly plan: PartitionPlan,
    private readonly existing: ExistingFile,
    private readonly received: readonly ReceivedObject[],
    private readonly missing: Missing,
  ) {}

  /** Writes the received objects. If some are rejected, before or after the conversion, writes only the others. */
  async run(): Promise<WriteResult> {
    if (this.received.length === 0) return this.#writeNothing();
    const interleaved = this.#interleaved();
    if (interleaved.size > 0) return this.#writeOthers(interleaved);
    const refusal = this.#refusal();
    if (refusal !== undefined) return { ...refusal, stillHeld: this.#stillHeld() };
    const done = await this.#convertAndCommit();
    return 'brokenRevisions' in done ? this.#writeOthers(done.brokenRevisions, done.shorter) : done;
  }

  /** Writes the objects, or resolves with rejected ones and writes nothing. Its connection of DuckDB is closed then: the others need one too. */
  async #convertAndCommit(): Promise<WriteResult | RejectedRevisions> {
    const { context, plan, existing, received } = this;
    const stillHeld = this.#stillHeld();
    const unchanged = plan.rebuild === undefined ? { stillHeld } : {};
    const duckdb = await context.engine.connect(sessionSize(received, existing));
    const made: MadeFile[] = [];
    const failed = new Map<string, CryptodlError>();
    try {
      for (const part of splitIntoParts(plan, received)) {
        const file = await makeFile(duckdb, context, plan, { ...part, existing });
        for (const [key, error] of file.result.failed) failed.set(key, error);
        if (file.result.rows > 0) made.push(file);
      }
      const sound = this.#without(failed);
      const brokenRevisions = [...failed].filter(([key]) => this.#replacedBy(key).length > 0);
      const shorter = context.acceptsShorter ? [] : sound.#shorter(made);
      if (brokenRevisions.length > 0 || shorter.length > 0)
        return { brokenRevisions: new Map(brokenRevisions), shorter };
      const laterRefusal = sound.#refusal();
      if (laterRefusal !== undefined)
        return { ...laterRefusal, failed: new Map([...laterRefusal.failed, ...failed]), stillHeld };
      if (made.length === 0) return { ...emptyResult(failed), ...unchanged };
      // The commit removes these staged files, or leaves them for the run that completes it.
      const files = made.splice(0);
      const gone = sound.#superseded();
      // Before the commit, because the commit replaces the held lines.
      const result = this.#summarize(files, failed);
      const quarantinePath = await this.#commit({ made: files, received, ...gone });
      if (plan.rebuild === undefined)
        return { ...result, stillHeld, quarantined: quarantinePath === undefined ? 0 : 1 };
      return this.#withLost(result, gone.lost, quarantinePath);
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

  #commit(commitment: Omit<Commit, 'existing'>): Promise<string | undefined> {
    const { context, plan, existing } = this;
    return context.serialize(existing.folder, () =>
      context.timed('commit', { plan }, () => commit(context, plan, { existing, ...commitment })),
    );
  }

  /** The same write after some objects have failed. */
  #without(failed: ReadonlyMap<string, CryptodlError>): PartitionWrite {
    const sound = this.received.filter(({ object }) => !failed.has(object.key));
    const missing = new Map([...this.missing, ...failed]);
    return new PartitionWrite(this.context, this.plan, this.existing, sound, missing);
  }

  #stillHeld(): ReadonlySet<string> {
    const keys = this.existing.inFile.map(({ key }) => key);
    return new Set(keys.filter((key) => this.missing.get(key) === 'absent'));
  }

  #replacedBy(key: string): readonly ObjectLine[] {
    const ofKey = this.received.filter(({ object }) => object.key === key);
    return this.existing.replaced.filter((line) => ofKey.some(({ object }) => overlaps(line, object.period)));
  }

  /** Writes the partition without the rejected objects, whose held rows stay. A rejected object that equals the held one is no failure. */
  async #writeOthers(
    rejected: ReadonlyMap<string, CryptodlError>,
    shorter: readonly ShorterRevision[] = [],
  ): Promise<WriteResult> {
    const { context, plan, existing, received, missing } = this;
    const isShorter = new Set(shorter.map((each) => each.received));
    const others = received.filter((each) => !rejected.has(each.object.key) && !isShorter.has(each));
    const result = await writeInto(context, plan, others, new Map([...missing, ...rejected]));
    const failed = [...rejected].filter(([key]) => {
      const digest = received.find(({ object }) => object.key === key)?.sha256;
      return this.#replacedBy(key).some((line) => line.sha256 !== digest);
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

  #shorter(made: readonly MadeFile[]): ShorterRevision[] {
    return this.received.flatMap((each) => {
      const { key } = each.object;
      const line = this.existing.replaced.find((candidate) => isPredecessor(candidate, each));
      const rows = factsOf(made, key)?.rows;
      const lackedRows = made.reduce((sum, { result }) => sum + (result.lacked.get(key) ?? 0), 0);
      return shorterRevision(line, each, { rows, keptRows: line?.rows, lackedRows });
    });
  }

  /** Moves a damaged file to the quarantine if every object in it is absent. Otherwise changes nothing. */
  async #writeNothing(): Promise<WriteResult> {
    const none = emptyResult(new Map());
    const stillHeld = this.#stillHeld();
    if (this.plan.rebuild !== 'damaged') return { ...none, stillHeld };
    const lost = this.existing.inFile;
    if (lost.length === 0 || stillHeld.size < lost.length) return none;
    return this.#withLost(none, lost, await this.#commit({ made: [], received: [], dead: [], lost }));
  }

  /** Reports lost objects that the archive or REST no longer has. Other lost objects can be fetched by a later run. */
  #withLost(
    result: WriteResult,
    lost: readonly ObjectLine[],
    quarantinePath: string | undefined,
  ): WriteResult {
    const failed = new Map(result.failed);
    for (const { key, file } of lost)
      if (this.missing.get(key) === 'absent') failed.set(key, lostError(file, key, quarantinePath));
    return { ...result, failed, quarantined: quarantinePath === undefined ? 0 : 1 };
  }

  #summarize(made: readonly MadeFile[], failed: ReadonlyMap<string, CryptodlError>): WriteResult {
    const spec = datasetSpec(this.context, this.plan);
    const written = new Map<string, WrittenObject>();
    for (const each of this.received) {
      const { object } = each;
      const facts = factsOf(made, object.key);
      if (facts === undefined) continue;
      const expected = facts.expectedRows ?? expectedRows(spec, this.plan.series, object);
      const replaces = replacedRevision(this.existing.objects, each);
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
  #superseded(): { dead: string[]; lost: ObjectLine[] } {
    const { plan, existing } = this;
    const periods = [
      ...this.received.map(({ object }) => object.period),
      ...(plan.emptyDays ?? []).map((day) => dayPeriod(day)),
    ];
    const dead = supersededFiles(existing, periods);
    return {
      dead: plan.split === true ? [...dead, existing.file] : dead,
      lost: lostLines(existing, periods),
    };
  }

  /** The result of a refused write, if an intact file would lose rows or rows would be stored twice; else undefined. */
  #refusal(): WriteResult | undefined {
    const { plan, existing, received, missing } = this;
    const periods = received.map(({ object }) => object.period);
    const { dead, lost } = this.#superseded();
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
  #interleaved(): Map<string, CryptodlError> {
    const rejected = new Map<string, CryptodlError>();
    for (const { object } of this.received) {
      const held = this.existing.replaced.filter((line) => overlaps(line, object.period));
      const others = this.existing.kept.filter((line) => held.some((each) => !areDisjoint(line, each)));
      if (others.length > 0) rejected.set(object.key, incompleteError(others, this.missing));
    }
    return rejected;
  }
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
    await context.timed('commit', { plan }, async () => backingOf(folder)?.published(folder));
    return result;
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.code !== 'lake-conflict') throw error;
    await reopen(folder);
    return failAll(received, known);
  }
}

async function reopen(folder: string): Promise<void> {
  await backingOf(folder)?.reopenSeries(folder);
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
