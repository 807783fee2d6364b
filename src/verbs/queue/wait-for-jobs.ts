/**
 * `enqueue --wait`: the progress of all workers, then the summary and the exit code of a download. The jobs are counted by the events that BullMQ keeps of
 * them: the return value of a job that is done, and the progress that an attempt leaves when it fails. A job is counted once, however often it runs and
 * whichever command enqueued it first.
 */
import { REASON_FACTS } from '../../model/absence-reasons.js';
import { UTC } from '../../model/calendar.js';
import { Counters, type Counts } from '../../model/counters.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import { CryptodlError } from '../../model/errors.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import { countText, numberText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import { closingBlock } from '../../run/report/closing-block.js';
import { Tally } from '../../run/report/tally.js';
import { printLines } from '../../text/printable.js';
import { queueWords, type CommandQueue, type OpenQueue } from './open-queue.js';
import { randomUUID } from 'node:crypto';
import { isRecord } from '../../text/json.js';
import { PREFIX, type JobEvents, type JobQueue } from './bullmq.js';
import { countsIn, jobErrorOf, countsOfFailure } from './end-attempt.js';

export type WaitFlag = 'json' | 'out' | 'quiet' | 'strict';

export interface Waiting extends Pick<CommandQueue, 'open' | 'signals'> {
  readonly pendingJobs: PendingJobs;
  readonly jobs: number;
  readonly options: Options<WaitFlag>;
  readonly io: Io;
}

const POLL_MS = 1000;
/** Without a change for so long, some jobs are looked up: another command may have removed or failed them before. */
const LOOK_UP_MS = 10_000;
const LOOKED_UP = 100;
/** Between two lines of progress. */
const LINE_MS = 30_000;

/** Resolves with the exit code of the download. Rejects if the server has lost the jobs. */
export async function waitForJobs(waiting: Waiting): Promise<ExitCode> {
  const { pendingJobs, io, signals, open } = waiting;
  const { clock } = io;
  let pending = Number.NaN;
  let changedAtMs = clock.monotonic();
  let toldAtMs = clock.monotonic();
  for (;;) {
    const left = await pendingJobs.count();
    if (left === undefined)
      throw new CryptodlError(
        'redis-unreachable',
        'the Redis server has lost the jobs: it was restarted without its data',
        {
          hint: 'run the same command again: it adds the jobs again, and those that are done find nothing to do',
        },
      );
    const nowMs = clock.monotonic();
    if (left !== pending) changedAtMs = nowMs;
    pending = left;
    if (pending === 0 || signals.signal.aborted) return conclude(waiting, pending);
    if (nowMs - toldAtMs >= LINE_MS) {
      toldAtMs = nowMs;
      tell(waiting, pending);
    }
    if (nowMs - changedAtMs >= LOOK_UP_MS) {
      changedAtMs = nowMs;
      await lookUp(open, pendingJobs);
      await tellOfNoWorker(waiting);
    }
    await clock.sleep(POLL_MS, signals.signal).catch(() => undefined);
  }
}

function tell({ jobs, options, io, pendingJobs }: Waiting, pending: number): void {
  const tally = tallyOf(pendingJobs.counts.all);
  const done = jobs - pending;
  const { outcomes } = tally;
  if (options.json)
    printLines(io.stdout, [{ event: 'progress', jobs, done, outcomes, bytes: tally.of('bytes') }]);
  else if (!options.quiet)
    printLines(io.stderr, [
      `${numberText(done)} of ${countText(jobs, 'job')}: ${numberText(outcomes.ok)} objects, ${numberText(outcomes.failed)} failed`,
    ]);
}

/** The line comes again after each pause without a change: in a log, the last lines tell the state. */
async function tellOfNoWorker({ open, options, io }: Waiting): Promise<void> {
  const workers = await Promise.all(
    [open.queue, open.converting].map((queue) => queue.getWorkersCount().catch(() => Number.NaN)),
  );
  if (options.quiet || options.json || workers.some((count) => count !== 0)) return;
  printLines(io.stderr, [
    `no worker takes jobs of this queue: start one with cryptodl worker ${queueWords(open)}`,
  ]);
}

/** Counts jobs that no worker will count: failed before this command, or gone. */
async function lookUp({ queue, converting }: OpenQueue, pendingJobs: PendingJobs): Promise<void> {
  for (const id of await pendingJobs.sample(LOOKED_UP)) {
    // A job that goes from one queue to the other is in both for a moment: the first queue is read again after the second.
    let place = queue;
    let state = 'unknown';
    for (place of [queue, converting, queue]) {
      state = await place.getJobState(id);
      if (state !== 'unknown' && state !== 'completed') break;
    }
    if (state === 'unknown' || state === 'completed') await pendingJobs.end(id, {});
    if (state === 'failed') await pendingJobs.endFailed(id, place);
  }
}

function conclude(waiting: Waiting, pending: number): ExitCode {
  const { jobs, options, io, signals, open } = waiting;
  const counts = waiting.pendingJobs.counts.all;
  const tally = tallyOf(counts);
  const elapsedMs = io.clock.monotonic() - io.startedAtMs;
  const failedJobs = numberOf(counts['failedJobs']);
  const code = exitCode({ signal: signals.signalled(), ...tally.status, strict: options.strict });
  if (options.json) {
    printLines(io.stdout, [
      {
        event: 'summary',
        jobs: { all: jobs, done: jobs - pending - failedJobs, failed: failedJobs, open: pending },
        outcomes: tally.outcomes,
        absent: tally.absentBy,
        failed: tally.failedBy,
        bytes: tally.of('bytes'),
        rows: tally.of('rows'),
        files: tally.of('files'),
        requests: numberOf(counts['requests']),
        retries: numberOf(counts['retries']),
        elapsedMs: Math.round(elapsedMs),
        exitCode: code,
      },
    ]);
    return code;
  }
  const closing = {
    tally,
    network: { requests: numberOf(counts['requests']), retries: { total: numberOf(counts['retries']) } },
    times: { elapsedMs, planMs: 0, pausedMs: 0, workMs: elapsedMs, stagesMs: NO_STAGES },
    diagnosis: [],
    dataPath: options.out,
    reportPath: undefined,
    quarantinePath: undefined,
    undone: 0,
    openJobs: pending,
    shard: undefined,
    next: nextStep(open, pending, failedJobs),
    alerts: [],
    trouble: { strict: options.strict, nothingNew: false },
  };
  if (!options.quiet || code !== 0) printLines(io.stderr, closingBlock(closing, options.quiet));
  return code;
}

function nextStep(open: OpenQueue, pending: number, failedJobs: number): string | undefined {
  if (pending > 0) return 'the workers go on; the same command waits for them again';
  if (failedJobs === 0) return undefined;
  return `cryptodl retry ${queueWords(open)} puts the ${countText(failedJobs, 'failed job')} back`;
}

const NO_STAGES = { wait: 0, transfer: 0, check: 0, convert: 0, commit: 0 };

/** A sum of counts of jobs. Attempts that are counted take objects away that the next one skips. */
const numberOf = (count = 0): number => (Number.isSafeInteger(count) ? Math.max(0, count) : 0);

/** A tally with these counts. Error codes and reasons that this program does not know are left out. */
function tallyOf(counts: Counts): Tally {
  const known = Object.entries(counts).filter(([name]) => {
    const [group, label = ''] = name.split('.');
    if (group === 'failedBy') return label in ERROR_TRAITS;
    return group !== 'absentBy' || label in REASON_FACTS;
  });
  return new Tally(UTC, Object.fromEntries(known.map(([name, count]) => [name, numberOf(count)])));
}

/** The keys of a command that was killed while it waited vanish after this time. */
const KEPT_SECONDS = 3600;

/** Of one that was killed before: it adds jobs for as long as the queue is full. */
const KEPT_WHILE_ADDING_SECONDS = 30 * 24 * 3600;

export class PendingJobs {
  /** Of the jobs that have ended. */
  readonly counts = new Counters();
  readonly #events: JobEvents[] = [];
  /** A set of the jobs that have not ended. An empty name shows that the server has kept its data. */
  readonly #key: string;

  constructor(private readonly open: OpenQueue) {
    this.#key = `${PREFIX}:${open.name}:cryptodl:wait:${randomUUID()}`;
  }

  /** To be called before the first `add`. */
  async begin(): Promise<void> {
    const { bullmq, connection, converting } = this.open;
    // An earlier end of a job that is enqueued again is not its end.
    const [seconds = 0, microseconds = 0] = await connection.client.time();
    const sinceMs = seconds * 1000 + Math.floor(microseconds / 1000);
    await this.add(['']);
    await connection.client.expire(this.#key, KEPT_WHILE_ADDING_SECONDS);
    for (const queue of [this.open.queue, converting]) {
      const events = bullmq.openEvents(queue.name, connection, String(sinceMs));
      events.on('completed', ({ jobId, returnvalue }) => {
        // Another worker converts what a job without counts has fetched.
        if (isRecord(returnvalue)) void this.end(jobId, countsIn(returnvalue));
      });
      events.on('failed', ({ jobId }) => void this.endFailed(jobId, queue));
      this.#events.push(events);
    }
  }

  /** To be called before the jobs are added to the queue, because a worker may be fast. */
  async add(jobs: readonly string[]): Promise<void> {
    await this.open.connection.client.sadd(this.#key, ...jobs);
  }

  /** The number of the jobs that have not ended. Undefined if the server has lost them. */
  async count(): Promise<number | undefined> {
    const { client } = this.open.connection;
    await client.expire(this.#key, KEPT_SECONDS);
    const members = await client.scard(this.#key);
    return members === 0 ? undefined : members - 1;
  }

  /** Some of the jobs that have not ended. */
  async sample(most: number): Promise<string[]> {
    const jobs = await this.open.connection.client.srandmember(this.#key, most);
    return jobs.filter((job) => job !== '');
  }

  async end(job: string, counts: Counts): Promise<void> {
    if ((await this.open.connection.client.srem(this.#key, job)) !== 1) return;
    for (const [name, count = 0] of Object.entries(counts)) this.counts.add(name, count);
  }

  async endFailed(id: string, queue: JobQueue): Promise<void> {
    const job = await queue.getJob(id);
    const counts = countsIn(job?.progress);
    const failure = (job && jobErrorOf(job)) ?? { code: 'bug', retryable: false };
    const isTold = failure.code !== 'job-stalled' && Object.keys(counts).length > 0;
    await this.end(id, { ...(isTold ? counts : countsOfFailure(failure)), failedJobs: 1 });
  }

  async close(): Promise<void> {
    await Promise.all(this.#events.map((events) => events.close()));
    await this.open.connection.client.del(this.#key);
  }
}
