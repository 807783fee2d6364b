/**
 * The jobs for which a command with `--wait` waits, by the events that BullMQ keeps of them: the return value of a job that is done, and the
 * progress that an attempt leaves when it fails. A job is counted once, however often it runs and whichever command enqueued it first.
 */
import { randomUUID } from 'node:crypto';
import { isRecord } from '../../text/json.js';
import { PREFIX } from './bullmq.js';
import type { JobEvents } from './bullmq.js';
import { countsOfFailure, stalledFailure } from './job-data.js';
import type { OpenQueue } from './open-queue.js';
import { Counters } from '../../model/counters.js';
import type { Counts } from '../../model/counters.js';

/** The keys of a command that was killed while it waited vanish after this time. */
const KEPT_SECONDS = 3600;
/** Of one that was killed before: it adds jobs for as long as the queue is full. */
const KEPT_WHILE_ADDING_SECONDS = 30 * 24 * 3600;

/** What an attempt tells the commands that wait for its job: as return value, or within the progress of the job. */
export interface AttemptReport {
  readonly counts: Counts;
  /** Another worker converts what this one has fetched. */
  readonly isFetched?: boolean;
}

export class Wait {
  readonly #counts = new Counters();
  readonly #open: OpenQueue;
  readonly #events: JobEvents[] = [];
  /** A set of the jobs that have not ended. An empty name shows that the server has kept its data. */
  readonly #key: string;

  constructor(open: OpenQueue) {
    this.#open = open;
    this.#key = `${PREFIX}:${open.name}:cryptodl:wait:${randomUUID()}`;
  }

  get counts(): Counts {
    return this.#counts.all;
  }

  /** To be called before the first `add`. */
  async begin(): Promise<void> {
    const { bullmq, connection, queue, converting } = this.#open;
    // An earlier end of a job that is enqueued again is not its end.
    const [seconds = 0, microseconds = 0] = await connection.client.time();
    const since = seconds * 1000 + Math.floor(microseconds / 1000);
    await this.add(['']);
    await connection.client.expire(this.#key, KEPT_WHILE_ADDING_SECONDS);
    for (const { name } of [queue, converting]) {
      const events = bullmq.openEvents(name, connection, String(since));
      events.on('progress', ({ jobId, data }) => void this.#report(jobId, data));
      events.on('completed', ({ jobId, returnvalue }) => {
        const report: unknown = returnvalue;
        if (isRecord(report) && report['isFetched'] === true) void this.#report(jobId, report);
        else void this.end(jobId, countsIn(report));
      });
      events.on('failed', ({ jobId, failedReason }) => {
        const stalled = stalledFailure(failedReason);
        void this.end(jobId, { failedJobs: 1, ...(stalled && countsOfFailure(stalled)) });
      });
      this.#events.push(events);
    }
  }

  /** To be called before the jobs are added to the queue, because a worker may be fast. */
  async add(jobs: readonly string[]): Promise<void> {
    await this.#open.connection.client.sadd(this.#key, ...jobs);
  }

  /** The number of the jobs that have not ended. Undefined if the server has lost them. */
  async pending(): Promise<number | undefined> {
    const { client } = this.#open.connection;
    await client.expire(this.#key, KEPT_SECONDS);
    const members = await client.scard(this.#key);
    return members === 0 ? undefined : members - 1;
  }

  /** Some of the jobs that have not ended. */
  async sample(most: number): Promise<string[]> {
    const jobs = await this.#open.connection.client.srandmember(this.#key, most);
    return jobs.filter((job) => job !== '');
  }

  async end(job: string, counts: Counts): Promise<void> {
    if ((await this.#open.connection.client.srem(this.#key, job)) === 1) this.#count(counts);
  }

  async close(): Promise<void> {
    await Promise.all(this.#events.map((events) => events.close()));
    await this.#open.connection.client.del(this.#key);
  }

  /** Counts what a job has done that has not ended. */
  async #report(job: string, report: unknown): Promise<void> {
    if ((await this.#open.connection.client.sismember(this.#key, job)) === 1) this.#count(countsIn(report));
  }

  #count(counts: Counts): void {
    for (const [name, count = 0] of Object.entries(counts)) this.#counts.add(name, count);
  }
}

/** The counts of a report, as far as they are whole numbers. */
function countsIn(report: unknown): Counts {
  const counts = isRecord(report) && isRecord(report['counts']) ? report['counts'] : {};
  return Object.fromEntries(
    Object.entries(counts).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])),
  );
}
