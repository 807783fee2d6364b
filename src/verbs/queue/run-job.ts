/** Does a job as a run of the shared pipeline, as a whole or in two parts, whose zips pass through the bucket of the lake. */
import { StagedZips, type ZipRecord } from '../../lake/mirror/staged-zips.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import { SILENT_OBSERVER, type Observer } from '../../model/observer.js';
import type { Resolved } from '../../plan/options/resolve.js';
import type { RunFlag } from '../../plan/options/verb-request.js';
import { parseDownload, requestsOf } from '../../plan/select/select-series.js';
import { givenSettings, givenFlags, describeDatasets } from '../../plan/select/selection.js';
import type { SymbolContext, RunSelection } from '../../plan/select/selection.js';
import { startRun } from '../../run/run.js';
import type { ZipStore, ReceivedZip } from '../../run/session/session.js';
import { Mirrors, callerOf } from '../../run/verb/open-mirrors.js';
import type { JobAttemptEnd, ProcessContext } from './end-attempt.js';
import { lakeOf, resolveJob, type FailedObject, type JobData } from './job-data.js';
import type { FailureReport } from '../../run/failures/failure-file.js';
import { forEachItem } from '../../run/verb/items.js';
import { writeFile, rm } from 'node:fs/promises';

/** What a job does if its zips are staged between two workers. */
export interface JobPart {
  readonly name: string;
  readonly zips: (staged: StagedZips) => ZipStore;
  /** Called when the run has ended by itself. */
  readonly end: (end: JobAttemptEnd, staged: StagedZips) => Promise<void>;
}

/** Rejects with the error that ended the run early: of the machine, of the options, or of a stop. */
export const runJob = (data: JobData, context: ProcessContext, part?: JobPart): Promise<JobAttemptEnd> =>
  withMirrors(data, context, async (mirrors, given) => {
    const resolved = await mirrors.resolve(given);
    try {
      if (part === undefined) return await runIn(resolved, data, context);
      const staged = await StagedZips.open((await mirrors.open(given.options)).bucket, part.name);
      const end = await runIn(resolved, data, context, part.zips(staged));
      await part.end(end, staged);
      return end;
    } finally {
      if (resolved !== given) await context.pipeline.closeLake(resolved.options.out);
    }
  });

/** Rejects with `lake-refused` for a lake in a bucket without conditional writes: two jobs of a series would lose each other's lines. */
export const refuseWithoutConditions = (data: JobData, context: ProcessContext): Promise<void> =>
  withMirrors(data, context, async (mirrors, { options }) => {
    const { mirror } = await mirrors.open(options);
    if ((await mirror.tryOut()).isAtomic) return;
    throw new CryptodlError(
      'lake-refused',
      `${lakeOf(data)}: the server has no conditional writes, which several workers of a lake need`,
      { hint: 'run cryptodl vision with --shard on each machine' },
    );
  });

/** Each job has mirrors of its own: they know what other workers have published before the job began. */
async function withMirrors<T>(
  data: JobData,
  context: ProcessContext,
  act: (mirrors: Mirrors, given: Resolved) => Promise<T>,
): Promise<T> {
  const given = resolveJob(data, context);
  const { io, warn, verbs } = context;
  const mirrors = new Mirrors(verbs.worker, () => ({ ...callerOf(io), warn }));
  try {
    return await act(mirrors, given);
  } finally {
    await mirrors.close();
  }
}

async function runIn(
  resolved: Resolved<RunFlag>,
  data: JobData,
  { exchange, surroundings, clock, signal, pipeline, warn }: ProcessContext,
  zips?: ZipStore,
): Promise<JobAttemptEnd> {
  const failed: FailedObject[] = [];
  const observer: Observer = { ...SILENT_OBSERVER, warn };
  const run = startRun({
    exchange,
    resolved,
    surroundings,
    observer,
    clock,
    signal,
    verb: data.verb,
    pipeline,
    zips,
    select: (session) => selectJob(session, resolved, data),
    asked: data.orders ?? [],
    report: reportInto(failed),
  });
  let written = 0;
  const end = await forEachItem(run, ({ outcome }) => {
    if (outcome === 'ok' || outcome === 'partial') written += 1;
  });
  if (end.ended !== undefined) throw toCryptodlError(end.ended);
  if (end.undone > 0) throw new CryptodlError('interrupted', 'the worker was stopped');
  return { counts: end.tally.all, failed, written };
}

/** Failures go to the queue instead of a file of the lake. */
const reportInto = (failed: FailedObject[]): FailureReport => ({
  add: (_, { key }, error) => {
    failed.push({ key, error });
    return Promise.resolve();
  },
  close: () => Promise.resolve(undefined),
});

/** The series of a job. Its symbol was chosen when the job was made, so no listing of symbols is read. Throws usage errors. */
function selectJob(context: SymbolContext, resolved: Resolved<never>, data: JobData): RunSelection {
  const { verb } = data;
  const { options } = context;
  const { range, datasets } = parseDownload(context, verb);
  const given = givenSettings(givenFlags(resolved));
  const [symbol = ''] = data.options.symbols ?? [];
  const requests = datasets.flatMap((dataset) => requestsOf({ ...context, verb }, dataset, symbol, range));
  return {
    verb,
    requests: requests.map((request) => ({ ...request, given })),
    hasListing: verb === 'vision' || options.join !== undefined,
    what: describeDatasets(datasets),
    range: range.text,
    notes: [],
  };
}

/** Whether the rows of a job come from zips alone. Rows of REST are not staged, and zips that stay zips are not converted. */
export function isConverted({ verb, options }: JobData): boolean {
  const { fill, join, format } = options;
  return verb === 'vision' && fill === undefined && join === undefined && format?.[0] !== 'zip';
}

const NONE: ReceivedZip['body'] = { kind: 'memory', bytes: Buffer.alloc(0) };

/** The run requests the zips that are not staged yet, and stages them one by one. */
export const fetching = (staged: StagedZips): ZipStore => ({
  isLast: true,
  zipOf: async (object, path, request) => {
    const known = await staged.find(object);
    if (known === 'absent') return undefined;
    if (known !== undefined) return receivedZip(known, NONE);
    const received = await request();
    const body = received?.body ?? NONE;
    try {
      if (body.kind === 'memory') await writeFile(path, body.bytes);
      await staged.put(object, received === undefined ? { absent: true } : recordOf(received), path);
    } finally {
      await rm(path, { force: true });
    }
    return received && { ...received, body: NONE };
  },
});

/** The run takes each zip from the bucket, and none from the archive. `failed`: the objects that could not be fetched. */
export const converting = (staged: StagedZips, failed: ReadonlyMap<string, CryptodlError>): ZipStore => ({
  isLast: false,
  zipOf: async (object, path) => {
    const failure = failed.get(object.key);
    if (failure !== undefined) throw failure;
    const record = await staged.find(object);
    if (record === 'absent') return undefined;
    if (record === undefined || !(await staged.take(object, record, path)))
      throw new CryptodlError(
        'staged-zip-lost',
        `${object.key}: the fetched zip is not in the bucket any more, or has other bytes`,
        { hint: 'a worker fetches it again: cryptodl retry --redis URL' },
      );
    return receivedZip(record, { kind: 'file', path, size: record.bytes });
  },
});

function recordOf(received: ReceivedZip): ZipRecord {
  const { body: _, bytes, verified, ...facts } = received;
  if (verified === 'rest' || verified === 'lake') throw new CryptodlError('bug', 'rows of REST have no zip');
  return { ...facts, verified, bytes };
}

const receivedZip = (record: ZipRecord, body: ReceivedZip['body']): ReceivedZip => ({ ...record, body });
