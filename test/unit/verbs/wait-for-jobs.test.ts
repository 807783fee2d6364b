/** `enqueue --wait`: how the ends of jobs are counted, over a Redis server and a queue in memory. */
import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { OpenQueue } from '../../../src/verbs/queue/open-queue.js';
import { PendingJobs, waitForJobs, type Waiting } from '../../../src/verbs/queue/wait-for-jobs.js';
import { IdleClock } from '../../helpers/idle-clock.js';

interface FakeJob {
  readonly failedReason?: string;
  readonly progress: unknown;
}

/** A set of the server, and a queue with these failed jobs. */
function openQueue(failed: Readonly<Record<string, FakeJob>>, events: EventEmitter): OpenQueue {
  const members = new Set<string>();
  const client = {
    time: () => Promise.resolve([0, 0]),
    expire: () => Promise.resolve(1),
    sadd: (_: string, ...names: string[]) => {
      for (const name of names) members.add(name);
      return Promise.resolve(names.length);
    },
    srem: (_: string, name: string) => Promise.resolve(members.delete(name) ? 1 : 0),
    scard: () => Promise.resolve(members.size),
    srandmember: () => Promise.resolve([...members]),
    del: () => Promise.resolve(1),
  };
  const queue = {
    name: 'main',
    getJob: (id: string) => Promise.resolve(failed[id]),
    getJobState: (id: string) => Promise.resolve(id in failed ? 'failed' : 'waiting'),
    getWorkersCount: () => Promise.resolve(1),
  };
  const converting = { ...queue, name: 'main~convert', getJobState: () => Promise.resolve('unknown') };
  const bullmq = { openEvents: (name: string) => (name === 'main' ? events : new EventEmitter()) };
  return { name: 'main', connection: { client }, queue, converting, bullmq } as unknown as OpenQueue;
}

interface Told {
  readonly failed?: Readonly<Record<string, FakeJob>>;
  /** Tells the ends of jobs as BullMQ does. */
  readonly tell?: (events: EventEmitter) => void;
  readonly strict?: boolean;
}

/** The summary of a command that waits for these jobs. */
async function summaryOf(
  jobs: readonly string[],
  { failed = {}, tell = () => undefined, strict = false }: Told,
): Promise<unknown> {
  const [clock, events] = [new IdleClock(0), new EventEmitter()];
  const open = openQueue(failed, events);
  const pendingJobs = new PendingJobs(open);
  await pendingJobs.begin();
  await pendingJobs.add(jobs);
  tell(events);
  let printed = '';
  const stdout = { write: (text: string) => (printed += text) };
  const waiting = {
    open,
    pendingJobs,
    jobs: jobs.length,
    options: { json: true, out: 'lake', quiet: false, strict },
    io: { clock, startedAtMs: 0, stdout, stderr: stdout },
    signals: { signal: new AbortController().signal, signalled: () => undefined },
  };
  const code = await clock.drive(waitForJobs(waiting as unknown as Waiting), { progress: () => 0 });
  return { code, ...(JSON.parse(printed.trimEnd().split('\n').at(-1) ?? '') as object) };
}

const done = (counts: object) => (events: EventEmitter) =>
  events.emit('completed', { jobId: 'one', returnvalue: { counts } });

describe('a command that waits', () => {
  it('counts a job once, although its end is told twice', async () => {
    const tell = (events: EventEmitter): void => {
      for (let times = 0; times < 2; times += 1) done({ 'outcome.ok': 2, rows: 5 })(events);
    };
    expect(await summaryOf(['one'], { tell })).toMatchObject({ code: 0, rows: 5, outcomes: { ok: 2 } });
  });

  it('counts a job that failed before, with the objects that its last attempt counted', async () => {
    const counts = { 'outcome.ok': 3, 'outcome.failed': 1, failedPermanent: 1, 'failedBy.http-not-found': 1 };
    const progress = { code: 'http-not-found', retryable: false, message: 'gone', counts };
    expect(await summaryOf(['one'], { failed: { one: { progress } } })).toMatchObject({
      code: 4,
      jobs: { all: 1, done: 0, failed: 1, open: 0 },
      outcomes: { ok: 3, failed: 1 },
    });
  });

  it('counts a job whose workers all ended as one failed object, whatever its attempts counted', async () => {
    const progress = {
      code: 'http-server-error',
      retryable: true,
      message: '503',
      counts: { 'outcome.ok': 3 },
    };
    const failedReason = 'job stalled more than allowable limit';
    const tell = (events: EventEmitter): boolean => events.emit('failed', { jobId: 'one' });
    expect(await summaryOf(['one'], { failed: { one: { failedReason, progress } }, tell })).toMatchObject({
      jobs: { failed: 1, open: 0 },
      outcomes: { ok: 0, failed: 1 },
      failed: { 'job-stalled': 1 },
    });
  });

  it.each([
    [false, 0],
    [true, 4],
  ])('with strict %s and a hole ends with exit code %i', async (strict, code) => {
    const tell = done({ 'outcome.absent': 1, 'absentBy.hole': 1 });
    expect(await summaryOf(['one'], { tell, strict })).toMatchObject({ code });
  });
});
