/** One partition file from start to finish: convert, read back, publish, remember. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parsePeriod, periodText } from '../calendar.js';
import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { LakePaths } from '../lake/layout.js';
import { seriesFolder } from '../lake/layout.js';
import { appendManifest, readManifest } from '../lake/manifest.js';
import type { ManifestLine, ObjectLine } from '../lake/manifest.js';
import { fileFacts, fileSize, publish } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import type { Serialize } from '../lake/serialize.js';
import type { PartitionPlan, Task } from '../task.js';
import type { DatasetSpec, Venue } from '../venue/venue.js';
import { findDataset, rowSeconds } from '../venue/venue.js';
import { convert } from './convert.js';
import type { ConversionResult, ObjectFacts } from './convert.js';
import type { ReceivedObject } from './csv-input.js';
import type { Engine, Session } from './duckdb.js';
import { rowsInParquet } from './statements.js';

export interface WriterContext {
  readonly venue: Venue;
  readonly paths: LakePaths;
  /** Spool of the run. */
  readonly tempFolder: string;
  readonly engine: Engine;
  readonly serialize: Serialize;
  readonly clock: Clock;
  readonly tool: string;
}

interface WrittenObject extends Partial<ObjectFacts> {
  /** Rows that the period must have, where that is known. */
  readonly expectedRows?: number;
}

interface WriteResult {
  readonly written: ReadonlyMap<string, WrittenObject>;
  readonly failed: ReadonlyMap<string, CryptodlError>;
  readonly files: number;
  readonly bytes: number;
  readonly duplicatesAcross: number;
}

export interface PartitionWriter {
  /** A plan that would add to a file which is not what was committed, or replace objects in it, becomes one that makes it anew. */
  prepare(plan: PartitionPlan): Promise<PartitionPlan>;
  /** `missing` are keys of the plan that could not be had. Rejects only on disk errors and bugs. */
  write(
    plan: PartitionPlan,
    received: readonly ReceivedObject[],
    missing: ReadonlySet<string>,
  ): Promise<WriteResult>;
}

export function createPartitionWriter(context: WriterContext): PartitionWriter {
  return {
    prepare: async (plan) => {
      if (plan.rebuild !== undefined) return plan;
      const { folder, file, inFile, kept, committed } = await heldOf(context, plan);
      if (inFile.length === 0) return plan;
      const path = join(folder, file);
      const isThere = (await fileSize(path)) !== undefined;
      const isCommitted = isThere && (await fileFacts(path)).sha256 === committed?.fileSha256;
      if (!isCommitted) return rebuilt(plan, inFile, 'damaged');
      return kept.length < inFile.length ? rebuilt(plan, inFile, 'revised') : plan;
    },
    write: async (plan, received, missing) => {
      const { folder, file, kept, inFile } = await heldOf(context, plan);
      const lost = inFile.filter((line) => missing.has(line.key));
      if (plan.rebuild !== undefined && plan.rebuild !== 'damaged' && lost.length > 0)
        return incomplete(received, lost);
      const name = randomUUID();
      const staged = join(context.paths.staging, `${name}.partial`);
      const csvPath = join(context.tempFolder, `${name}.csv`);
      await mkdir(context.paths.staging, { recursive: true });
      const session = await context.engine.session();
      try {
        const result = await convertPartition(session, context, plan, received, kept, {
          staged,
          csvPath,
          file: join(folder, file),
        });
        if (result.rows === 0)
          return { written: new Map(), failed: result.failed, files: 0, bytes: 0, duplicatesAcross: 0 };
        if (plan.rebuild !== undefined && plan.rebuild !== 'damaged') {
          const wrong = inFile.filter((line) => result.failed.has(line.key));
          if (wrong.length > 0)
            return incomplete(
              received.filter(({ object }) => !result.failed.has(object.key)),
              wrong,
              result.failed,
            );
        }
        const facts = await readBack(session, plan, staged, result);
        await context.serialize(folder, () =>
          commit(context, plan, {
            folder,
            file,
            staged,
            facts,
            result,
            received,
            lost: [...lost, ...inFile.filter((line) => result.failed.has(line.key))],
          }),
        );
        return summary(plan, specOf(context, plan), received, result, facts);
      } finally {
        session.close();
        await rm(staged, { force: true });
        await rm(csvPath, { force: true });
      }
    },
  };
}

function specOf(context: WriterContext, plan: PartitionPlan): DatasetSpec {
  const spec = findDataset(context.venue, plan.series.market, plan.series.dataset);
  if (spec === undefined) throw new CryptodlError('bug', `${plan.series.dataset} is not declared`);
  return spec;
}

interface HeldFile {
  readonly folder: string;
  readonly file: string;
  readonly inFile: ObjectLine[];
  readonly kept: ObjectLine[];
  /** The last commit of the file. */
  readonly committed: ObjectLine | undefined;
}

/** What the manifest says is in the plan's file; `kept` are the objects that this plan does not replace. */
async function heldOf(context: WriterContext, plan: PartitionPlan): Promise<HeldFile> {
  const folder = join(context.paths.root, seriesFolder(context.venue.name, plan.series));
  const file = `${plan.label}.${plan.settings.format}`;
  const held = (await readManifest(folder))[plan.settings.format];
  const inFile = held.inFile(file);
  const committed = held.lastOfFile(file);
  if (plan.rebuild !== undefined) return { folder, file, inFile, kept: [], committed };
  const fetched = new Set(
    plan.tasks.filter((task) => task.action.kind === 'fetch').map((task) => task.object.key),
  );
  return { folder, file, inFile, committed, kept: inFile.filter((line) => !fetched.has(line.key)) };
}

function rebuilt(
  plan: PartitionPlan,
  inFile: readonly ObjectLine[],
  rebuild: 'damaged' | 'revised',
): PartitionPlan {
  const fetched = new Set(
    plan.tasks.filter((task) => task.action.kind === 'fetch').map((task) => task.object.key),
  );
  const others = inFile.flatMap((line): Task[] => {
    const period = parsePeriod(line.cadence, line.period);
    if (period === undefined || fetched.has(line.key)) return [];
    return [{ series: plan.series, object: { key: line.key, period }, action: { kind: 'fetch' } }];
  });
  const isOther = new Set(others.map((task) => task.object.key));
  const tasks = [...plan.tasks.filter((task) => !isOther.has(task.object.key)), ...others];
  return { ...plan, rebuild, tasks: tasks.sort((a, b) => a.object.period.from - b.object.period.from) };
}

/** A sound file is not replaced by one with fewer objects. */
function incomplete(
  received: readonly ReceivedObject[],
  lost: readonly ObjectLine[],
  failed: ReadonlyMap<string, CryptodlError> = new Map(),
): WriteResult {
  const error = new CryptodlError(
    'partition-incomplete',
    `${lost[0]?.file ?? ''} stays as it is: ${lost.map((line) => line.key).join(', ')} could not be had again`,
  );
  const all = new Map([...failed, ...received.map(({ object }) => [object.key, error] as const)]);
  return { written: new Map(), failed: all, files: 0, bytes: 0, duplicatesAcross: 0 };
}

async function convertPartition(
  session: Session,
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  kept: readonly ObjectLine[],
  paths: { staged: string; csvPath: string; file: string },
): Promise<ConversionResult> {
  const { venue, tool } = context;
  return convert(session, {
    spec: specOf(context, plan),
    settings: plan.settings,
    series: plan.series,
    received,
    ...(kept.length === 0 ? {} : { kept: { file: paths.file, lines: kept } }),
    csvPath: paths.csvPath,
    targetPath: paths.staged,
    provenance: (written) =>
      JSON.stringify({
        tool: `cryptodl ${tool}`,
        venue: venue.name,
        ...plan.series,
        period: plan.label,
        timeZone: 'UTC',
        objects: [...kept, ...written.map(({ object, sha256 }) => ({ key: object.key, sha256 }))]
          .map(({ key, sha256 }) => ({ key, sha256 }))
          .sort((a, b) => (a.key < b.key ? -1 : 1)),
      }),
  });
}

/** A file is published only after it was read and holds the rows that went in. */
async function readBack(
  session: Session,
  plan: PartitionPlan,
  staged: string,
  result: ConversionResult,
): Promise<FileFacts> {
  const facts = await fileFacts(staged);
  const rows =
    plan.settings.format === 'csv'
      ? facts.newlines - 1
      : Number((await session.rows(rowsInParquet(staged)))[0]?.['rows']);
  if (rows !== result.rows)
    throw new CryptodlError('disk', `${staged} reads back with ${rows} rows, ${result.rows} were written`);
  return facts;
}

interface Commit {
  readonly folder: string;
  readonly file: string;
  readonly staged: string;
  readonly facts: FileFacts;
  readonly result: ConversionResult;
  readonly received: readonly ReceivedObject[];
  /** Objects that were in the file and are not in it any more. */
  readonly lost: readonly ObjectLine[];
}

async function commit(context: WriterContext, plan: PartitionPlan, made: Commit): Promise<void> {
  await publish(made.staged, join(made.folder, made.file));
  const at = new Date(context.clock.now()).toISOString();
  const lines: ManifestLine[] = made.lost.map((line) => ({
    v: 1,
    kind: 'dropped',
    key: line.key,
    format: plan.settings.format,
    at,
  }));
  for (const received of made.received) {
    const facts = made.result.written.get(received.object.key);
    if (facts === undefined) continue;
    const file = { file: made.file, fileBytes: made.facts.bytes, fileSha256: made.facts.sha256 };
    lines.push({ ...objectLine(received, plan, at, context.tool), ...facts, ...file });
  }
  await appendManifest(made.folder, lines);
  if (plan.rebuild === 'forced') await removeDeadFiles(made.folder, plan);
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

function summary(
  plan: PartitionPlan,
  spec: DatasetSpec,
  received: readonly ReceivedObject[],
  result: ConversionResult,
  facts: FileFacts,
): WriteResult {
  const seconds = rowSeconds(spec, plan.series.interval);
  const written = new Map<string, WrittenObject>();
  for (const { object } of received) {
    const rows = result.written.get(object.key);
    if (rows === undefined) continue;
    const expected =
      seconds === undefined
        ? {}
        : { expectedRows: ((object.period.to - object.period.from) * 86_400) / seconds };
    written.set(object.key, { ...rows, ...expected });
  }
  return {
    written,
    failed: result.failed,
    files: 1,
    bytes: facts.bytes,
    duplicatesAcross: result.duplicatesAcross,
  };
}
