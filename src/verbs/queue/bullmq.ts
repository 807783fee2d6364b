/** The owner of BullMQ, an optional package: loads it on first use, and opens queues and workers on a connection to Redis. */
import type * as BullMq from 'bullmq';
import { loadOptional } from '../../files/optional-package.js';
import type { RedisConnection } from '../../http/redis/connection.js';

/** Beginning of all keys of all queues. */
export const PREFIX = 'cryptodl:queue';
/** A command adds 10,000 jobs per second, with two events each. A command that waits must not miss the end of a job among them. */
const KEPT_EVENTS = 100_000;

export type JobQueue = BullMq.Queue;
export type QueuedJob = BullMq.Job;
export type JobWorker = BullMq.Worker;
export type JobEvents = BullMq.QueueEvents;
export type NewJob = Parameters<BullMq.Queue['addBulk']>[0][number];

export const idOf = ({ id = '' }: QueuedJob): string => id;

/** The classes of a queue and a worker that can read each job. */
function readable({ Job, Queue, Worker }: Pick<typeof BullMq, 'Job' | 'Queue' | 'Worker'>) {
  class ReadableJob<D, R, N extends string, P extends BullMq.JobProgress> extends Job<D, R, N, P> {
    /** Data that are not JSON are data that no verb of this program has made. BullMQ itself would never end such a job. */
    static override fromJSON<D, R, N extends string>(
      ...[queue, json, id]: Parameters<typeof Job.fromJSON>
    ): BullMq.Job<D, R, N> {
      try {
        return super.fromJSON<D, R, N>(queue, json, id);
      } catch {
        return super.fromJSON<D, R, N>(queue, { ...json, data: 'null' }, id);
      }
    }
  }
  class ReadableQueue extends Queue {
    protected override get Job(): typeof Job {
      return ReadableJob;
    }
  }
  class ReadableWorker extends Worker {
    protected override get Job(): typeof Job {
      return ReadableJob;
    }
  }
  return { ReadableQueue, ReadableWorker };
}

/** Rejects with `package-missing`. */
export async function loadBullMq() {
  const bullmq = await loadOptional('a queue', ['bullmq', 'ioredis'], () => import('bullmq'));
  const { DelayedError, QueueEvents, UnrecoverableError, WaitingError } = bullmq;
  const { ReadableQueue, ReadableWorker } = readable(bullmq);
  return {
    // The error classes by which a processor tells what happens to its job.
    DelayedError,
    UnrecoverableError,
    WaitingError,
    openQueue: (name: string, { client }: RedisConnection): JobQueue => {
      const queue = new ReadableQueue(name, {
        connection: client,
        prefix: PREFIX,
        streams: { events: { maxLen: KEPT_EVENTS } },
      });
      // The connection reports its own errors; without a listener, BullMQ prints them.
      queue.on('error', () => undefined);
      return queue;
    },
    openWorker: (
      name: string,
      { client }: RedisConnection,
      processor: BullMq.Processor,
      options: Omit<BullMq.WorkerOptions, 'connection' | 'prefix'>,
    ): JobWorker => new ReadableWorker(name, processor, { ...options, connection: client, prefix: PREFIX }),
    /** The events of a queue after the one with this id. */
    openEvents: (name: string, { client }: RedisConnection, after: string): JobEvents => {
      const events = new QueueEvents(name, {
        connection: client.duplicate(),
        prefix: PREFIX,
        lastEventId: after,
      });
      // The connection reports its own errors; without a listener, the event would end the process.
      events.on('error', () => undefined);
      return events;
    },
  };
}
