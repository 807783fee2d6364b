/** `cryptodl worker`: does the jobs of a queue, several at a time, over one set of requests and limits. */
import type { VerbCall } from '../../run/verb/verb.js';
import { Pipeline } from '../../run/session/pipeline.js';
import { CryptodlError, toCryptodlError, usage } from '../../model/errors.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import type { Io, Signalled } from '../../model/io.js';
import { SharedResources } from '../../model/shared-resources.js';
import { isLakeAddress } from '../../model/lake-address.js';
import { countText, numberText } from '../../model/units.js';
import { surroundingsOf } from '../../files/environment.js';
import type { SessionFlag } from '../../plan/options/verb-request.js';
import type { Options } from '../../plan/options/flags.js';
import { createSerializer } from '../../model/in-order.js';
import { shownRedis } from '../../http/redis/redis-errors.js';
import { namedLake } from './job-data.js';
import { withQueue, type CommandQueue } from './open-queue.js';
import type { JobScope } from './process-job.js';
import type { ProcessContext } from './end-attempt.js';
import type { Counts } from '../../model/counters.js';
import { closeWorker, readyWorker, refuseSecond, untilEnd } from './open-worker.js';
import { peakMemoryBytes } from '../../run/report/run-summary.js';
import { printLines } from '../../text/printable.js';

type WorkerFlag = SessionFlag | 'drain' | 'jobs' | 'json' | 'lease' | 'queue' | 'quiet' | 'role';

/** The queues of a role, and what it does with their jobs. */
const WORK_OF: Readonly<
  Record<Options<'role'>['role'], readonly { readonly of: 'queue' | 'converting'; readonly act: JobScope }[]>
> = {
  fetch: [{ of: 'queue', act: 'fetch' }],
  convert: [{ of: 'converting', act: 'convert' }],
  both: [
    { of: 'queue', act: 'whole' },
    { of: 'converting', act: 'convert' },
  ],
};

/** Resolves with the exit code: with --drain, that of a download of the jobs that this worker did; that of the signal; or that of the error that ended the worker. */
export async function worker(command: VerbCall<WorkerFlag>): Promise<ExitCode> {
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

async function work(command: VerbCall<WorkerFlag>, queue: CommandQueue): Promise<ExitCode> {
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
  { exchange, resolved, layers, verbs, io }: VerbCall<WorkerFlag>,
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

/** The jobs that a worker has ended: a line for each, and the summary. */
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
