/** One job of a queue: a run of the shared pipeline, and its end as counts and a typed failure. */
import { forEachItem } from '../../run/look-up.js';
import type { Pipeline } from '../../run/pipeline/pipeline.js';
import { startRun } from '../../run/run.js';
import type { ZipStore } from '../../run/session.js';
import type { Counts } from '../../model/counters.js';
import { CryptodlError, toCryptodlError, usage } from '../../model/errors.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import type { Observer } from '../../model/observer.js';
import type { Io } from '../../model/io.js';
import { callerOf, Mirrors } from '../../run/open-mirrors.js';
import { StagedZips } from '../../lake/mirror/staged-zips.js';
import type { RawLayer, Resolved } from '../../plan/options/resolve.js';
import type { VerbSpecs } from '../../plan/options/verb-spec.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import type { FailureReport } from '../../run/report/failure-report.js';
import { parseDownload, requestsOf } from '../../plan/select/select-series.js';
import { describeDatasets, givenFlags, givenSettings } from '../../plan/select/selection.js';
import type { DownloadVerb, RunSelection, SymbolContext } from '../../plan/select/selection.js';
import { lakeOf, resolveJob } from './job-data.js';
import type { JobData } from './job-data.js';

export interface JobContext extends Pick<VerbRequest, 'exchange' | 'surroundings' | 'clock' | 'signal'> {
  readonly pipeline: Pipeline;
  /** Options of the worker, for everything that a job does not decide. */
  readonly layers: readonly RawLayer[];
  readonly verbs: VerbSpecs;
  readonly io: Io;
  readonly warn: (message: string) => void;
}

export interface JobEnd {
  readonly counts: Counts;
  /** The failures of objects, with their keys. */
  readonly failed: readonly FailedObject[];
  readonly written: number;
}

export interface FailedObject {
  readonly key: string;
  readonly error: CryptodlError;
}

/** What a job does if its zips are staged between two workers. */
export interface JobPart {
  readonly name: string;
  readonly zips: (staged: StagedZips) => ZipStore;
  /** Called when the run has ended by itself. */
  readonly end: (end: JobEnd, staged: StagedZips) => Promise<void>;
}

/** Rejects with the error that ended the run early: of the machine, of the options, or of a stop. */
export async function runJob(data: JobData, context: JobContext, part?: JobPart): Promise<JobEnd> {
  const { pipeline } = context;
  const given = resolveJob(data, context);
  // A mirror for each job: it knows what other workers have published before the job began.
  const mirrors = mirrorsOf(context);
  try {
    const resolved = await mirrors.resolve(given);
    try {
      if (part === undefined) return await runIn(resolved, data, context);
      const staged = await StagedZips.open((await mirrors.open(given.options)).bucket, part.name);
      const end = await runIn(resolved, data, context, part.zips(staged));
      await part.end(end, staged);
      return end;
    } finally {
      if (resolved !== given) await pipeline.closeLake(resolved.options.out);
    }
  } finally {
    await mirrors.close();
  }
}

/** Rejects with `lake-refused` for a lake in a bucket without conditional writes: two jobs of a series would lose each other's lines. */
export async function refuseWithoutConditions(data: JobData, context: JobContext): Promise<void> {
  const mirrors = mirrorsOf(context);
  try {
    const { mirror } = await mirrors.open(resolveJob(data, context).options);
    if ((await mirror.tryOut()).isAtomic) return;
    throw new CryptodlError(
      'lake-refused',
      `${lakeOf(data)}: the server has no conditional writes, which several workers of a lake need`,
      { hint: 'run cryptodl vision with --shard on each machine' },
    );
  } finally {
    await mirrors.close();
  }
}

function mirrorsOf({ io, warn, verbs }: JobContext): Mirrors {
  return new Mirrors(verbs.worker, () => ({ ...callerOf(io), warn }));
}

async function runIn(
  resolved: Resolved,
  data: JobData,
  { exchange, surroundings, clock, signal, pipeline, warn }: JobContext,
  zips?: ZipStore,
): Promise<JobEnd> {
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
function selectJob(context: SymbolContext, resolved: Resolved, verb: DownloadVerb): RunSelection {
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
