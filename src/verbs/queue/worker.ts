/** `cryptodl worker`: does the jobs of a queue, several at a time, over one set of requests and limits. */
import type { Command } from '../../run/verb/verb.js';
import { Pipeline } from '../../run/session/pipeline.js';
import { CryptodlError, toCryptodlError, usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { SharedResources } from '../../model/io.js';
import { isLakeAddress } from '../../model/lake-address.js';
import { countText } from '../../model/units.js';
import { surroundingsOf } from '../../files/environment.js';
import type { SessionFlag } from '../../plan/options/verb-request.js';
import type { Options } from '../../plan/options/flags.js';
import { createSerializer } from '../../model/in-order.js';
import { shownRedis } from '../../http/redis/redis-errors.js';
import type { JobQueue } from './bullmq.js';
import { namedLake } from './job-data.js';
import { withQueue, type CommandQueue, type OpenQueue } from './open-queue.js';
import type { Work } from './process-job.js';
import type { ProcessContext } from './end-attempt.js';
import type { Counts } from '../../model/counters.js';
import { readyWorker, closeWorker, DRAIN_POLL_MS, endOf } from './open-worker.js';
import { JobEnds } from './job-ends.js';

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
  const onSignal = (): void => stop.abort(signals.signal.reason);
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

/** Counts the requests of the pipeline since the last call. */
function requestCounter(pipeline: Pipeline): () => Counts {
  const told = { requests: 0, retries: 0 };
  const newOf = (name: keyof typeof told, now = 0): number => {
    const more = Math.max(0, now - told[name]);
    told[name] = now;
    return more;
  };
  return () => {
    const { requests, retries } = pipeline.network ?? {};
    return { requests: newOf('requests', requests), retries: newOf('retries', retries?.total) };
  };
}

/** Resolves after a stop; with `left`, also when the queues have no jobs but those that this worker leaves to others. */
async function untilEnd(
  queues: readonly JobQueue[],
  { signal, clock }: ProcessContext,
  left: ReadonlySet<string> | undefined,
): Promise<void> {
  const stopped = new Promise<'stopped'>((resolve) => {
    signal.addEventListener('abort', () => resolve('stopped'));
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
      open += await queue.getJobCountByTypes('waiting', 'prioritized', 'delayed', 'active');
      if (left.size === 0) continue;
      const delayed = await queue.getDelayed(0, left.size - 1);
      open -= delayed.filter(({ id = '' }) => left.has(id)).length;
    }
    return open;
  } catch {
    return Number.NaN;
  }
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
