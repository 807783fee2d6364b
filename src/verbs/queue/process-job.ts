/** What a worker does with a job: checks it, does it as a run of the shared pipeline, and tells the queue how it ended. */
import { rm, writeFile } from 'node:fs/promises';
import { StagedZips } from '../../lake/mirror/staged-zips.js';
import type { ZipRecord } from '../../lake/mirror/staged-zips.js';
import { notBefore } from '../../model/clock.js';
import { Counters } from '../../model/counters.js';
import type { Counts } from '../../model/counters.js';
import { CryptodlError, toCryptodlError, usage } from '../../model/errors.js';
import type { Serialize } from '../../model/in-order.js';
import type { SharedResources } from '../../model/io.js';
import { isLakeAddress } from '../../model/lake-address.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import type { Observer } from '../../model/observer.js';
import type { Resolved } from '../../plan/options/resolve.js';
import type { RunFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { parseDownload, requestsOf } from '../../plan/select/select-series.js';
import { describeDatasets, givenFlags, givenSettings } from '../../plan/select/selection.js';
import type { DownloadVerb, RunSelection, SymbolContext } from '../../plan/select/selection.js';
import { forEachItem } from '../../run/verb/items.js';
import { callerOf, Mirrors } from '../../run/verb/open-mirrors.js';
import type { Command } from '../../run/verb/verb.js';
import type { Pipeline } from '../../run/session/pipeline.js';
import type { FailureReport } from '../../run/report/failure-report.js';
import { startRun } from '../../run/run.js';
import type { ReceivedZip, ZipStore } from '../../run/session/session.js';
import type { QueuedJob } from './bullmq.js';
import { addConversion, addFetch, failuresIn, idOf } from './hand-over.js';
import type { FailedObject } from './hand-over.js';
import {
  countsIn,
  countsOfFailure,
  jobFailure,
  lakeOf,
  lakeProblem,
  parseJob,
  resolveJob,
} from './job-data.js';
import type { JobData, JobFailure } from './job-data.js';
import type { CommandQueue } from './open-queue.js';

/** A job that this worker may not do waits this long for another worker. */
const PUT_BACK_MS = 30_000;

/** The `layers` are the options of the worker, for everything that a job does not decide. */
export interface ProcessContext
  extends
    Pick<Command, 'exchange' | 'io' | 'layers' | 'verbs'>,
    Pick<CommandQueue, 'open' | 'warn'>,
    Pick<VerbRequest, 'surroundings' | 'clock' | 'signal'> {
  /** The lake of the worker, and whether its `--out` was given. */
  readonly lake: string;
  readonly isLakeGiven: boolean;
  readonly pipeline: Pipeline;
  readonly serialize: Serialize;
  /** The lakes in buckets that were tried: whether several workers may write them. */
  readonly common: SharedResources;
  /** The requests since the last call. */
  readonly newRequests: () => Counts;
  /** Called at the end of each attempt of a job. */
  readonly onEnd: (job: {
    readonly id: string;
    readonly written: number;
    readonly failure?: JobFailure;
    /** The job gets a further attempt. */
    readonly isPutOff?: boolean;
  }) => void;
  /** Gets the names of jobs that this worker leaves to others. */
  readonly left: Set<string>;
  /** Called with an error that would fail each job of this machine. The worker ends. */
  readonly onFatal: (error: CryptodlError) => void;
}

/** Errors of a job itself; all other fatal errors are those of the machine. */
const OF_JOB: ReadonlySet<string> = new Set(['usage', 'manifest-damaged', 'bug']);

export type Work = 'whole' | 'fetch' | 'convert';

/** The processor of BullMQ. `leaseSignal` aborts when the lease of the job is lost: another worker does the job then. */
export async function processJob(
  context: ProcessContext,
  job: QueuedJob,
  token: string,
  work: Work,
  leaseSignal: AbortSignal = new AbortController().signal,
): Promise<{ readonly counts: Counts } | undefined> {
  const { bullmq } = context.open;
  let data: JobData;
  try {
    data = parseJob(job.data);
  } catch (error) {
    return fail(context, job, endBy(toCryptodlError(error)));
  }
  const problem = lakeOfOthers(lakeOf(data), context, work);
  if (problem !== undefined) {
    context.warn(problem);
    context.left.add(idOf(job));
    await job.moveToDelayed(context.clock.now() + PUT_BACK_MS, token);
    throw new bullmq.DelayedError();
  }
  const jobContext = {
    ...context,
    // A machine whose clock is behind would leave out the last days.
    clock: notBefore(context.clock, job.timestamp),
    signal: AbortSignal.any([context.signal, leaseSignal]),
  };
  const end = await doPart(data, jobContext, job, work).catch(async (thrown: unknown) => {
    // Without the lease, BullMQ accepts no end.
    if (leaseSignal.aborted) throw thrown;
    const error = errorOfJob(thrown, context);
    if (error !== undefined) return endBy(error);
    // The job waits for another worker at once, and loses no attempt.
    await job.moveToWait(token);
    throw new bullmq.WaitingError();
  });
  if (end === undefined) return undefined;
  if (end.failed.length > 0) return fail(context, job, end);
  context.onEnd({ id: idOf(job), written: end.written });
  return { counts: countsUntil(job, context, end.counts) };
}

/** The error that fails a job; undefined if the worker or its machine is the cause. Throws bugs. */
function errorOfJob(
  thrown: unknown,
  { signal, isLakeGiven, onFatal }: ProcessContext,
): CryptodlError | undefined {
  if (signal.aborted) return undefined;
  if (!(thrown instanceof CryptodlError)) throw thrown;
  const isOfJob = OF_JOB.has(thrown.code) || (isRefused(thrown) && !isLakeGiven);
  if (!thrown.fatal || isOfJob) return thrown;
  onFatal(thrown);
  return undefined;
}

/** Why this worker leaves a job with this lake to others; undefined if it does the job. */
function lakeOfOthers(lake: string, own: ProcessContext, work: Work): string | undefined {
  const wrongLake = lakeProblem(lake, own.lake, own.isLakeGiven);
  // The zips pass from one part to the other through the bucket of the lake.
  const needsBucket = work !== 'whole' && !isLakeAddress(lake);
  if (wrongLake === undefined && !needsBucket) return undefined;
  const problem = wrongLake ?? `the job is for the folder ${lake}, not a bucket`;
  const words = `--out ${lake}${needsBucket ? ' --role both' : ''}`;
  return `${problem}: this worker leaves the job to others; to do it here: cryptodl worker ${words}`;
}

function doPart(
  data: JobData,
  context: ProcessContext,
  job: QueuedJob,
  work: Work,
): Promise<AttemptEnd | undefined> {
  const { serialize, common } = context;
  const act = work === 'fetch' && !isConverted(data) ? 'whole' : work;
  const lake = lakeOf(data);
  const run = async (): Promise<AttemptEnd | undefined> => {
    if (act !== 'fetch' && isLakeAddress(lake))
      await common.once(`conditions of ${lake}`, () => refuseWithoutConditions(data, context));
    return ACTS[act](data, context, job);
  };
  // Two jobs of a series would change one manifest at the same time, and two jobs with orders one order.
  const { out, market, dataset, interval, symbols } = data.options;
  const series = [out, market, dataset, interval, symbols].join('~');
  const inTurn = (): Promise<AttemptEnd | undefined> => serialize(series, run);
  return data.orders === undefined ? inTurn() : serialize(`orders ${lake}`, inTurn);
}

/** The end of an attempt. `own`: the failures because of which a further attempt may help; by default all. */
interface AttemptEnd {
  readonly counts: Counts;
  readonly failed: readonly FailedObject[];
  readonly written: number;
  readonly own?: readonly FailedObject[];
}

type Act = (data: JobData, context: ProcessContext, job: QueuedJob) => Promise<AttemptEnd | undefined>;

/** Resolve with the end of this attempt, or with undefined if another worker goes on with the job. */
const ACTS: Readonly<Record<Work, Act>> = {
  whole: (data, context) => runJob(data, context),
  fetch: async (data, context, job) => {
    await whileBehind(context);
    const part: JobPart = { name: idOf(job), zips: fetching, end: () => Promise.resolve() };
    const end = await runJob(data, context, part);
    // Without a further attempt, the fetched zips are converted first; then the job fails with the objects that could not be fetched.
    if (furtherAttempt(job, end.failed) !== undefined) return end;
    const counts = countsUntil(job, context, {});
    await addConversion(context.open.converting, job, { ...data, counts }, end.failed, context);
    return undefined;
  },
  convert: async (data, context, job) => {
    const failures = failuresIn(job.data);
    const ownOf = ({ failed }: AttemptEnd): FailedObject[] => failed.filter(({ key }) => !failures.has(key));
    const part: JobPart = {
      name: idOf(job),
      zips: (staged) => converting(staged, failures),
      end: async (end, staged) => {
        if (furtherAttempt(job, ownOf(end)) === undefined) return staged.remove();
        // This conversion fails, too. Its next attempt uses the objects that were fetched again by then.
        await staged.remove(ownOf(end).map(({ key }) => key));
        await addFetch(context.open.queue, job, data);
      },
    };
    const end = await runJob(data, context, part);
    return { ...end, own: ownOf(end) };
  },
};

/** Fetching pauses while this many jobs wait for their conversion, because their zips take room in the bucket. */
const MOST_STAGED = 1000;
const BEHIND_POLL_MS = 2000;

async function whileBehind({ open, clock, signal, warn }: ProcessContext): Promise<void> {
  for (;;) {
    const { waiting = 0, prioritized = 0 } = await open.converting.getJobCounts('waiting', 'prioritized');
    if (waiting + prioritized < MOST_STAGED) return;
    warn(
      `${MOST_STAGED} fetched jobs wait for their conversion: this worker pauses until workers with --role convert have done some`,
    );
    await clock.sleep(BEHIND_POLL_MS, signal);
  }
}

/** The failure because of which a job gets a further attempt. */
function furtherAttempt(job: QueuedJob, failed: readonly FailedObject[]): CryptodlError | undefined {
  const isLast = job.attemptsMade + 1 >= (job.opts.attempts ?? 1);
  return isLast ? undefined : passing(failed);
}

/** The failure that another attempt may not have. Another worker may have the credentials for a bucket that only the job names. */
function passing(failed: readonly FailedObject[]): CryptodlError | undefined {
  return failed.find(({ error }) => (error.retryable && !error.fatal) || isRefused(error))?.error;
}

function isRefused({ code }: CryptodlError): boolean {
  return code === 'lake-refused';
}

function endBy(error: CryptodlError): AttemptEnd {
  return { counts: {}, failed: [{ key: '', error }], written: 0 };
}

/** The counts of all attempts of a job until now. A conversion has those of its fetch in its data. */
function countsUntil({ progress, data }: QueuedJob, { newRequests }: ProcessContext, counts: Counts): Counts {
  const before = [countsIn(data), countsIn(progress)];
  return new Counters(...before, counts, newRequests()).all;
}

/** Counts that only the last attempt of a job decides. */
const OF_LAST = /^(?:failed|absentBy\.|outcome\.(?:failed|absent|skipped)$|waitedTooLong$)/;

/** The counts of an attempt that another one follows. The next one skips the written objects, which count as written. */
function countsOfAttempt(counts: Counts): Counts {
  const written = (counts['outcome.ok'] ?? 0) + (counts['outcome.partial'] ?? 0);
  const kept = Object.entries(counts).filter(([name]) => !OF_LAST.test(name));
  return { ...Object.fromEntries(kept), 'outcome.skipped': -written };
}

/** Keeps the typed failure with the job, and ends this attempt. The last attempt, or a failure that stays, ends the job. */
async function fail(
  context: ProcessContext,
  job: QueuedJob,
  { failed, counts, written, own = failed }: AttemptEnd,
): Promise<never> {
  const { bullmq } = context.open;
  const mayCome = passing(own);
  const error = mayCome ?? failed[0]?.error ?? new CryptodlError('bug', 'a job failed without an error');
  const attempts = job.attemptsMade + 1;
  const keys = failed.map(({ key }) => key).filter((key) => key !== '');
  const failure = jobFailure(error, keys, attempts);
  const isEnd = furtherAttempt(job, own) === undefined;
  const ofEnd = keys.length > 0 ? counts : countsOfFailure(failure);
  const untilNow = countsUntil(job, context, isEnd ? ofEnd : countsOfAttempt(counts));
  await job.updateProgress({ ...failure, counts: untilNow });
  context.onEnd({ id: idOf(job), written, failure, isPutOff: !isEnd });
  if (mayCome === undefined) throw new bullmq.UnrecoverableError(failure.message);
  // BullMQ makes a further attempt if one is left.
  throw new CryptodlError(error.code, failure.message, { retryAfterMs: error.retryAfterMs });
}

/** What a job does if its zips are staged between two workers. */
interface JobPart {
  readonly name: string;
  readonly zips: (staged: StagedZips) => ZipStore;
  /** Called when the run has ended by itself. */
  readonly end: (end: AttemptEnd, staged: StagedZips) => Promise<void>;
}

/** Rejects with the error that ended the run early: of the machine, of the options, or of a stop. */
function runJob(data: JobData, context: ProcessContext, part?: JobPart): Promise<AttemptEnd> {
  return withMirrors(data, context, async (mirrors, given) => {
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
}

/** Rejects with `lake-refused` for a lake in a bucket without conditional writes: two jobs of a series would lose each other's lines. */
function refuseWithoutConditions(data: JobData, context: ProcessContext): Promise<void> {
  return withMirrors(data, context, async (mirrors, { options }) => {
    const { mirror } = await mirrors.open(options);
    if ((await mirror.tryOut()).isAtomic) return;
    throw new CryptodlError(
      'lake-refused',
      `${lakeOf(data)}: the server has no conditional writes, which several workers of a lake need`,
      { hint: 'run cryptodl vision with --shard on each machine' },
    );
  });
}

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
): Promise<AttemptEnd> {
  const failed: FailedObject[] = [];
  const observer: Observer = { ...SILENT_OBSERVER, warn };
  const run = startRun({
    exchange,
    resolved,
    surroundings,
    read: () => Promise.reject(usage('a job reads no list of symbols')),
    observer,
    clock,
    signal,
    verb: data.verb,
    pipeline,
    zips,
    select: (session) => selectJob(session, resolved, data.verb),
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
function reportInto(failed: FailedObject[]): FailureReport {
  return {
    add: (_, { key }, error) => {
      failed.push({ key, error });
      return Promise.resolve();
    },
    close: () => Promise.resolve(undefined),
  };
}

/** The series of a job. Its symbol was chosen when the job was made, so no listing of symbols is read. Throws usage errors. */
function selectJob(context: SymbolContext, resolved: Resolved<never>, verb: DownloadVerb): RunSelection {
  const { options } = context;
  const { range, datasets } = parseDownload(context, verb);
  const given = givenSettings(givenFlags(resolved));
  const [symbol = ''] = options.symbols?.names ?? [];
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

// The two parts of a job that one worker fetches and another converts: both are runs whose zips pass through the bucket of the lake.

/** Whether the rows of a job come from zips alone. Rows of REST are not staged, and zips that stay zips are not converted. */
function isConverted({ verb, options }: JobData): boolean {
  const { fill, join, format } = options;
  return verb === 'vision' && fill === undefined && join === undefined && format?.[0] !== 'zip';
}

const NONE: ReceivedZip['zip'] = { kind: 'memory', bytes: Buffer.alloc(0) };

/** The run requests the zips that are not staged yet, and stages them one by one. */
function fetching(staged: StagedZips): ZipStore {
  return {
    isLast: true,
    zipOf: async (object, path, request) => {
      const known = await staged.find(object);
      if (known === 'absent') return undefined;
      if (known !== undefined) return receivedZip(known, NONE);
      const received = await request();
      const zip = received?.zip ?? NONE;
      try {
        if (zip.kind === 'memory') await writeFile(path, zip.bytes);
        await staged.put(object, received === undefined ? { absent: true } : recordOf(received), path);
      } finally {
        await rm(path, { force: true });
      }
      return received && { ...received, zip: NONE };
    },
  };
}

/** The run takes each zip from the bucket, and none from the archive. `failed`: the objects that could not be fetched. */
function converting(staged: StagedZips, failed: ReadonlyMap<string, CryptodlError>): ZipStore {
  return {
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
  };
}

function recordOf(received: ReceivedZip): ZipRecord {
  const { zip: _, zipBytes: bytes, verified, ...facts } = received;
  if (verified === 'rest' || verified === 'lake') throw new CryptodlError('bug', 'rows of REST have no zip');
  return { ...facts, verified, bytes };
}

function receivedZip({ bytes, ...facts }: ZipRecord, zip: ReceivedZip['zip']): ReceivedZip {
  return { ...facts, zip, zipBytes: bytes };
}
