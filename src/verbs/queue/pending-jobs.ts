/** The jobs that a command waits for, on the Redis server. */
import { randomUUID } from 'node:crypto';
import { Counters, type Counts } from '../../model/counters.js';
import { isRecord } from '../../text/json.js';
import { PREFIX, type JobEvents, type JobQueue } from './bullmq.js';
import { countsIn, jobErrorOf, countsOfFailure } from './end-attempt.js';
import type { OpenQueue } from './open-queue.js';

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
