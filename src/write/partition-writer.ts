/** One partition file from start to finish: convert, read back, publish, remember. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CryptodlError } from '../errors.js';
import type { ObjectLine } from '../lake/manifest.js';
import { fileFacts } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import type { PartitionPlan } from '../task.js';
import type { DatasetSpec } from '../venue/venue.js';
import { findDataset, rowSeconds } from '../venue/venue.js';
import { commit } from './commit.js';
import { convert } from './convert.js';
import type { ConversionResult } from './convert.js';
import type { ReceivedObject } from './csv-input.js';
import type { Session } from './duckdb.js';
import { heldFile, withRebuild } from './held-file.js';
import type { HeldFile } from './held-file.js';
import { rowsInParquet } from './statements.js';
import type { PartitionWriter, WriteResult, WriterContext, WrittenObject } from './writer.js';

export function createPartitionWriter(context: WriterContext): PartitionWriter {
  return {
    prepare: (plan) => withRebuild(context, plan),
    write: async (plan, received, missing) => {
      const held = await heldFile(context, plan);
      const lost = held.inFile.filter((line) => missing.has(line.key));
      if (keepsSoundFile(plan) && lost.length > 0) return incomplete(received, lost);
      const name = randomUUID();
      const staged = join(context.paths.staging, `${name}.partial`);
      const csvPath = join(context.tempFolder, `${name}.csv`);
      await mkdir(context.paths.staging, { recursive: true });
      const session = await context.engine.session();
      try {
        const result = await convertPartition(session, context, plan, { received, held, staged, csvPath });
        const refused = held.inFile.filter((line) => result.failed.has(line.key));
        if (keepsSoundFile(plan) && refused.length > 0) return incomplete(received, refused, result.failed);
        if (result.rows === 0) return nothing(result.failed);
        const facts = await readBack(session, plan, staged, result);
        const made = { held, staged, facts, result, received, lost: [...lost, ...refused] };
        await context.serialize(held.folder, () => commit(context, plan, made));
        return summary(plan, specOf(context, plan), received, result, facts);
      } finally {
        session.close();
        await rm(staged, { force: true });
        await rm(csvPath, { force: true });
      }
    },
  };
}

/** A sound file is not replaced by one with fewer objects. */
function keepsSoundFile(plan: PartitionPlan): boolean {
  return plan.rebuild === 'revised' || plan.rebuild === 'forced';
}

function nothing(failed: ReadonlyMap<string, CryptodlError>): WriteResult {
  return { written: new Map(), failed, files: 0, bytes: 0, duplicatesAcross: 0 };
}

function incomplete(
  received: readonly ReceivedObject[],
  lost: readonly ObjectLine[],
  failed: ReadonlyMap<string, CryptodlError> = new Map(),
): WriteResult {
  const keys = lost.map((line) => line.key).join(', ');
  const error = new CryptodlError(
    'partition-incomplete',
    `${lost[0]?.file ?? ''} stays as it is: ${keys} could not be had again`,
  );
  return nothing(new Map([...received.map(({ object }) => [object.key, error] as const), ...failed]));
}

function specOf(context: WriterContext, plan: PartitionPlan): DatasetSpec {
  const spec = findDataset(context.venue, plan.series.market, plan.series.dataset);
  if (spec === undefined) throw new CryptodlError('bug', `${plan.series.dataset} is not declared`);
  return spec;
}

interface Inputs {
  readonly received: readonly ReceivedObject[];
  readonly held: HeldFile;
  readonly staged: string;
  readonly csvPath: string;
}

async function convertPartition(
  session: Session,
  context: WriterContext,
  plan: PartitionPlan,
  inputs: Inputs,
): Promise<ConversionResult> {
  const { kept, path } = inputs.held;
  return convert(session, {
    spec: specOf(context, plan),
    settings: plan.settings,
    series: plan.series,
    received: inputs.received,
    ...(kept.length === 0 ? {} : { kept: { file: path, lines: kept } }),
    csvPath: inputs.csvPath,
    targetPath: inputs.staged,
    provenance: (written) => provenance(context, plan, kept, written),
  });
}

/** No time stamps: the same objects give the same file. */
function provenance(
  context: WriterContext,
  plan: PartitionPlan,
  kept: readonly ObjectLine[],
  written: readonly ReceivedObject[],
): string {
  const objects = [...kept, ...written.map(({ object, sha256 }) => ({ key: object.key, sha256 }))];
  return JSON.stringify({
    tool: `cryptodl ${context.tool}`,
    venue: context.venue.name,
    ...plan.series,
    period: plan.label,
    timeZone: 'UTC',
    objects: objects.map(({ key, sha256 }) => ({ key, sha256 })).sort((a, b) => (a.key < b.key ? -1 : 1)),
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
  const isCsv = plan.settings.format === 'csv';
  const rows = isCsv ? facts.newlines - 1 : Number((await session.rows(rowsInParquet(staged)))[0]?.['rows']);
  if (rows === result.rows) return facts;
  throw new CryptodlError('disk', `${staged} reads back with ${rows} rows, ${result.rows} were written`);
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
    const days = object.period.to - object.period.from;
    written.set(object.key, {
      ...rows,
      ...(seconds === undefined ? {} : { expectedRows: (days * 86_400) / seconds }),
    });
  }
  return {
    written,
    failed: result.failed,
    files: 1,
    bytes: facts.bytes,
    duplicatesAcross: result.duplicatesAcross,
  };
}
