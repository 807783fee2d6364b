/** `cryptodl worker`: does the jobs of a queue, several at a time, over one set of requests and limits. */
import { hostname } from 'node:os';
import type { Command } from '../../run/verb/verb.js';
import { Pipeline } from '../../run/session/pipeline.js';
import type { Clock } from '../../model/clock.js';
import { CryptodlError, toCryptodlError, usage } from '../../model/errors.js';
import { exitCode } from '../../model/exit-code.js';
import type { ExitCode } from '../../model/exit-code.js';
import { SharedResources } from '../../model/io.js';
import type { Io, Signalled } from '../../model/io.js';
import { isLakeAddress } from '../../model/lake-address.js';
import { countText, numberText } from '../../model/units.js';
import { surroundingsOf } from '../../files/environment.js';
import type { SessionFlag } from '../../plan/options/verb-request.js';
import type { Options } from '../../plan/options/flags.js';
import { createSerializer } from '../../model/in-order.js';
import { peakMemoryBytes } from '../../run/report/run-summary.js';
import { redisProblem, shownRedis } from '../../http/redis/redis-errors.js';
import { printLines } from '../../text/printable.js';
import type { JobQueue, JobWorker } from './bullmq.js';
import { namedLake, stalledFailure } from './job-data.js';
import { withQueue } from './open-queue.js';
import type { CommandQueue, OpenQueue } from './open-queue.js';
import { processJob } from './process-job.js';
import type { ProcessContext, Work } from './process-job.js';
import type { Counts } from '../../model/counters.js';

type WorkerFlag = SessionFlag | 'drain' | 'jobs' | 'json' | 'lease' | 'queue' | 'quiet' | 'role';

/** The queues of a role, and what it does with their jobs. */
const WORK_OF: Readonly<
  Record<Options<'role'>['role'], readonly { readonly of: 'queue' | 'converting'; readonly act: Work }[]>
> = {
  fetch: [{ of: 'queue', act: 'fetch' }],
  convert: [{ of: 'converting', act: 'convert' }],
  both: [
    { of: 'queue', act: 'whole' },
    { of: 'converting', act: 'convert' },
  ],
};
/** Two workers that are killed one after the other must not fail their job. */
const MOST_STALLS = 5;
/** Minutes of which the number of jobs is kept for `status`. */
const KEPT_MINUTES = 24 * 60;
const LONGEST_BACKOFF_MS = 300_000;

/** Resolves with the exit code: with --drain, that of a download of the jobs that this worker did; that of the signal; or that of the error that ended the worker. */
export async function worker(command: Command<WorkerFlag>): Promise<ExitCode> {
  const { resolved, io } = command;
  const { options } = resolved;
  const { role } = options;
  if (role !== 'both' && resolved.origins.out !== 'default' && !isLakeAddress(options.out))
    throw usage(
      `--role ${role}: the workers share the zips in a bucket, and --out is a folder`,
      'give a bucket, for example --out s3://my-bucket/lake, or leave --role out',
    );
  return withQueue(options, 'worker', io, (queue) => work(command, queue));
}

async function work(command: Command<WorkerFlag>, queue: CommandQueue): Promise<ExitCode> {
  const { resolved, io } = command;
  const { options } = resolved;
  const { open, signals } = queue;
  const stop = new AbortController();
  const ends = new JobEnds(options, io);
  const context = await contextOf(command, queue, { stop, onEnd: ends.add });
  const workers = await Promise.all(
    WORK_OF[options.role].map(({ of, act }) => readyWorker(open[of].name, act, options, context)),
  );
  const role = options.role === 'both' ? '' : ` (--role ${options.role})`;
  ends.say(
    `working on the queue ${open.name} at ${shownRedis(open.address)}, ${countText(options.jobs, 'job')} at a time${role}`,
  );
  const onSignal = (): void => {
    stop.abort(signals.signal.reason);
  };
  signals.signal.addEventListener('abort', onSignal, { once: true });
  if (signals.signal.aborted) onSignal();
  // Another worker may still fetch for the queue of the conversions.
  const drained = options.role === 'fetch' ? [open.queue] : [open.queue, open.converting];
  await untilEnd(drained, context, options.drain ? context.left : undefined);
  await Promise.all(workers.map((jobs) => closeWorker(jobs, io.clock)));
  await context.pipeline.close();
  const signal = signals.signalled();
  const error = signal === undefined && stop.signal.aborted ? toCryptodlError(stop.signal.reason) : undefined;
  const code = ends.conclude(signal, error);
  if (error !== undefined) throw error;
  return code;
}

/** What all jobs of the worker share. Rejects with `locked` if another worker has the folder. */
async function contextOf(
  { exchange, resolved, layers, verbs, io }: Command<WorkerFlag>,
  { open, warn }: CommandQueue,
  { stop, onEnd }: Pick<ProcessContext, 'onEnd'> & { readonly stop: AbortController },
): Promise<ProcessContext> {
  const { clock } = io;
  const { out } = resolved.options;
  const surroundings = surroundingsOf(io.environment);
  const isLakeGiven = resolved.origins.out !== 'default';
  const lake = namedLake(out, surroundings.home);
  await refuseSecond(open, lake);
  // Before the first job, whose lease may be shorter than the loading takes.
  await import('../../lake/mirror/mirror.js');
  const parts = { exchange, surroundings, clock, common: new SharedResources() };
  const isToBucket = isLakeAddress(out) || !isLakeGiven;
  const pipeline = new Pipeline({ ...parts, resolved, stop, isToBucket });
  return {
    ...parts,
    layers,
    verbs,
    io,
    open,
    warn,
    lake,
    isLakeGiven,
    pipeline,
    signal: stop.signal,
    serialize: createSerializer(),
    newRequests: requestCounter(pipeline),
    onEnd,
    left: new Set(),
    onFatal: (error) => stop.abort(error),
  };
}

/** The jobs that this worker has ended: one line each, and the summary. */
class JobEnds {
  readonly #ended = { jobs: 0, failed: 0, written: 0 };
  #retryable = 0;

  constructor(
    private readonly options: Options<'json' | 'log-level' | 'quiet'>,
    private readonly io: Io,
  ) {}

  readonly add: ProcessContext['onEnd'] = ({ id, written, failure, isPutOff = false }) => {
    const { json, logLevel } = this.options;
    this.#ended.written += written;
    if (failure === undefined) this.#ended.jobs += 1;
    else if (!isPutOff) {
      this.#ended.failed += 1;
      this.#retryable += failure.retryable ? 1 : 0;
    }
    if (json) this.#print({ event: 'job', id, written, failure: failure?.code ?? null, isPutOff });
    else if (failure !== undefined)
      this.say(`${isPutOff ? 'put off' : 'failed '} ${id}: ${failure.code}: ${failure.message}`);
    else if (logLevel === 'debug') this.say(`done    ${id}: ${countText(written, 'object')} written`);
  };

  say(line: string): void {
    if (!this.options.quiet) printLines(this.io.stderr, [line]);
  }

  /** Prints the summary. Returns the exit code. */
  conclude(signal: Signalled, error: CryptodlError | undefined): ExitCode {
    const { jobs, failed, written } = this.#ended;
    const code = exitCode({
      signal,
      ended: error?.code,
      failedRetryable: this.#retryable,
      failedPermanent: failed - this.#retryable,
    });
    this.say(
      `${countText(jobs, 'job')} done, ${numberText(failed)} failed, ${countText(written, 'object')} written`,
    );
    if (this.options.json)
      this.#print({ event: 'summary', ...this.#ended, peakMemoryBytes: peakMemoryBytes(), exitCode: code });
    return code;
  }

  #print(event: object): void {
    printLines(this.io.stdout, [event]);
  }
}

function openWorker(
  queue: string,
  act: Work,
  { jobs: concurrency, leaseMs, retryDelayMs }: Options<'jobs' | 'lease' | 'retry-delay'>,
  context: ProcessContext,
): JobWorker {
  const { open, lake, isLakeGiven } = context;
  // Workers of the same folder, also on different machines, have the same end of the name.
  const end = isLakeGiven && !isLakeAddress(lake) ? endOf(lake) : '';
  const jobs = open.bullmq.openWorker(
    queue,
    open.connection,
    // BullMQ makes the signal for a function with three parameters.
    (job, token, leaseSignal) => processJob(context, job, token ?? '', act, leaseSignal),
    {
      name: `${hostname()}:${process.pid}${end}`,
      concurrency,
      lockDuration: leaseMs,
      stalledInterval: leaseMs / 2,
      maxStalledCount: MOST_STALLS,
      metrics: { maxDataPoints: KEPT_MINUTES },
      settings: { backoffStrategy: (attempts, _type, error) => backoffMs(retryDelayMs, attempts, error) },
    },
  );
  listen(jobs, open, context);
  return jobs;
}

/**
 * Opens a worker until it is ready. A worker of BullMQ whose own connection is cut before it is ready never takes a job, also when the server is
 * there again. After a stop, the worker may not be ready.
 */
async function readyWorker(...of: Parameters<typeof openWorker>): Promise<JobWorker> {
  const { clock, signal } = of[3];
  for (;;) {
    const jobs = openWorker(...of);
    const isReady = await jobs.waitUntilReady().then(
      () => true,
      () => false,
    );
    if (isReady || signal.aborted) return jobs;
    await closeWorker(jobs, clock);
    await clock.sleep(DRAIN_POLL_MS, signal).catch(() => undefined);
  }
}

/** Counts the requests of the pipeline since the last call. */
function requestCounter(pipeline: Pipeline): () => Counts {
  let before = { requests: 0, retries: 0 };
  return () => {
    const { network } = pipeline;
    const now = { requests: network?.requests ?? 0, retries: network?.retries.total ?? 0 };
    const counts = {
      requests: Math.max(0, now.requests - before.requests),
      retries: Math.max(0, now.retries - before.retries),
    };
    before = now;
    return counts;
  };
}

/** The pause before a further attempt of a job: that of the host, or longer with each attempt. */
function backoffMs(retryDelayMs: number, attempts = 1, error?: Error): number {
  const own = Math.min(retryDelayMs * 10 * 4 ** (attempts - 1), LONGEST_BACKOFF_MS);
  const { retryAfterMs = 0 } = error instanceof CryptodlError ? error : {};
  return Math.max(own, retryAfterMs);
}

function listen(jobs: JobWorker, open: OpenQueue, { onEnd, warn }: ProcessContext): void {
  jobs.on('failed', (job, error) => {
    const failure = stalledFailure(error.message, job?.attemptsMade);
    if (job !== undefined && failure !== undefined) onEnd({ id: job.id ?? '', written: 0, failure });
  });
  jobs.on('lockRenewalFailed', (ids) => {
    for (const id of ids) jobs.cancelJob(id);
  });
  jobs.on('error', (error) => {
    // A worker that was paused for longer than its lease comes back to a job that another worker has: its commits were safe.
    if (/^(?:Missing lock|Missing key|Lock mismatch|could not renew lock)/i.test(error.message))
      warn(
        'the lease of a job ran out while this worker had it, or the server lost the job: another worker does it again',
      );
    else warn(`${redisProblem(open.address, error).message}; the worker tries again`);
  });
}

/** Without a connection to Redis, the jobs in hand cannot be given back: their leases end by themselves. */
const CLOSE_MS = 20_000;

/** Gives back the jobs in hand: they wait for another worker at once. */
async function closeWorker(jobs: JobWorker, clock: Clock): Promise<void> {
  const waited = new AbortController();
  const closing = jobs.close();
  closing.catch(() => undefined);
  try {
    await Promise.race([closing, clock.sleep(CLOSE_MS, waited.signal)]);
  } finally {
    waited.abort();
  }
}

const DRAIN_POLL_MS = 500;

/** Resolves after a stop; with `left`, also when the queues have no jobs but those that this worker leaves to others. */
async function untilEnd(
  queues: readonly JobQueue[],
  { signal, clock }: ProcessContext,
  left: ReadonlySet<string> | undefined,
): Promise<void> {
  const stopped = new Promise<'stopped'>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve('stopped');
    });
  });
  while (!signal.aborted) {
    await clock.sleep(DRAIN_POLL_MS, signal).catch(() => undefined);
    // Without a connection, the counts come with the next one.
    if (left !== undefined && (await Promise.race([stopped, openJobs(queues, left)])) === 0) return;
  }
}

/** The number of jobs that this worker may still do. A job that goes from one queue to the next is in both for a moment. */
async function openJobs(queues: readonly JobQueue[], left: ReadonlySet<string>): Promise<number> {
  try {
    let open = 0;
    for (const queue of queues) {
      const counts = await queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active');
      open += Object.values(counts).reduce((sum, count) => sum + count, 0);
      if (left.size === 0) continue;
      const delayed = await queue.getDelayed(0, left.size - 1);
      open -= delayed.filter(({ id = '' }) => left.has(id)).length;
    }
    return open;
  } catch {
    return Number.NaN;
  }
}

// The names of workers on the Redis server: a lake in a folder has one worker.

/** A name on the Redis server has no blanks. */
function endOf(folder: string): string {
  return `:${encodeURIComponent(folder)}`;
}

/** To be called before the worker begins. Rejects with `locked`. */
async function refuseSecond(open: OpenQueue, lake: string): Promise<void> {
  // A user of an ACL may not be allowed to see the clients.
  const workers = await open.queue.getWorkers().catch(() => []);
  const other = workers.find(({ rawname = '' }) => rawname.endsWith(endOf(lake)));
  if (other === undefined) return;
  throw new CryptodlError(
    'locked',
    `another worker of the queue ${open.name} writes to the folder ${lake} (${other['addr'] ?? 'no address'})`,
    {
      hint: 'a folder has one worker; several workers need a lake in a bucket, for example --out s3://my-bucket/lake',
    },
  );
}
