/** A whole run in simulated time: 3,100 objects (100 symbols × 31 days) from a host with a long tail and faults. */
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../src/errors.js';
import type { Fetch } from '../../src/fetch.js';
import { Concurrency } from '../../src/queue/concurrency.js';
import { breaker } from '../../src/retry/breaker.js';
import { retry } from '../../src/retry/retry.js';
import { RateMeter } from '../../src/throttle/meter.js';
import { QuotaBucket } from '../../src/throttle/quota-bucket.js';
import { answer } from '../helpers/requests.js';
import { plan, queueOf, task } from '../helpers/run-queue.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const TASKS = 3100;
const MINUTE_MS = 60_000;

/** Uniform in [0, 1), the same every time. */
function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Service time of 0.7 s in the mean with a long tail, and so many transient failures. */
function host(clock: VirtualClock, share: number): Fetch & { requests: number } {
  const random = randoms(7);
  const serve = async (): Promise<ReturnType<typeof answer>> => {
    fetch.requests += 1;
    const isSlow = random() < 0.02;
    const serviceMs = 300 + random() * 700 + (isSlow ? random() * 5000 : 0);
    await clock.sleep(serviceMs);
    if (random() < share) throw new CryptodlError('connection-lost', 'a transient failure');
    return answer('x');
  };
  const fetch = Object.assign(serve as Fetch, { requests: 0 });
  return fetch;
}

/** Lets time pass until the work is done; when that was. */
async function toEnd(clock: VirtualClock, work: Promise<unknown>): Promise<number> {
  const ends: number[] = [];
  const ended = work.then(() => ends.push(clock.monotonic()));
  while (ends.length === 0) await clock.advance(1000);
  await ended;
  return ends[0] ?? Number.NaN;
}

interface Outcome {
  readonly seconds: number;
  readonly ok: number;
  readonly failed: number;
  readonly requests: number;
  readonly limiterWaits: number;
  readonly breakerOpened: number;
}

/** Our layers and our queue, over simulated time. */
async function ours(share: number): Promise<Outcome> {
  const clock = new VirtualClock();
  const random = randoms(11);
  clock.random = random;
  const server = host(clock, share);
  const quota = new QuotaBucket({
    clock,
    name: 'archive',
    meter: new RateMeter({ permitsPerSecond: 5000, burst: 5000 }, clock.monotonic()),
    maxWaitMs: 3_600_000,
  });
  const told = { breakerOpened: 0 };
  const limited: Fetch = async (request, context) => {
    await quota.take({ weight: 1, priority: 'normal' }, context.signal);
    return server(request, context);
  };
  const guarded = breaker({ clock, openMs: 30_000 })(limited);
  let setLimit = (_limit: number): void => undefined;
  const concurrency = new Concurrency({ kind: 'auto', max: 128 }, clock, (limit) => {
    setLimit(limit);
  });
  const counted: Fetch = async (request, context) => {
    try {
      const response = await guarded(request, context);
      concurrency.onSuccess();
      return response;
    } catch (error) {
      if (error instanceof CryptodlError && error.code === 'breaker-open') told.breakerOpened += 1;
      throw error;
    }
  };
  const fetch = retry({
    clock,
    strategy: 'full',
    retries: 2,
    baseDelayMs: 100,
    factor: 1.5,
    maxDelayMs: 2000,
    maxWaitMs: 3_600_000,
    mostAtOnce: () => Math.max(5, Math.floor(concurrency.limit / 10)),
  })(counted);
  const signal = new AbortController().signal;
  const download = async (_plan: unknown, { object }: { object: { key: string } }): Promise<string> => {
    const url = `http://archive.test/${object.key}`;
    await fetch({ url, bucket: 'archive' }, { signal, traceId: object.key, attempt: 1 });
    return object.key;
  };
  const { queue, run, writes, failed } = queueOf({ download }, concurrency.limit);
  setLimit = (limit) => {
    queue.setDownloads(limit);
  };
  const plans = Array.from({ length: 100 }, (_, symbol) =>
    plan(
      `s${symbol}`,
      Array.from({ length: 31 }, (__, day) => task(`s${symbol}-${day}`)),
    ),
  );
  const started = clock.monotonic();
  const endedAt = await toEnd(clock, run(plans));
  return {
    seconds: (endedAt - started) / 1000,
    ok: writes.reduce((sum, { received }) => sum + received.length, 0),
    failed: failed.length,
    requests: server.requests,
    limiterWaits: quota.waits,
    breakerOpened: told.breakerOpened,
  };
}

/**
 * The predecessor: 50 workers behind one limiter that was made for another host; from 1,440 requests in a minute on, each
 * costs two seconds, one after the other.
 */
async function predecessor(share: number): Promise<number> {
  const clock = new VirtualClock();
  const server = host(clock, share);
  let windowStart = clock.monotonic();
  let inWindow = 0;
  let turn = Promise.resolve();
  const limiter = (): Promise<void> => {
    turn = turn.then(async () => {
      if (clock.monotonic() - windowStart >= MINUTE_MS) {
        windowStart = clock.monotonic();
        inWindow = 0;
      }
      inWindow += 1;
      if (inWindow > 1440) await clock.sleep(2000);
    });
    return turn;
  };
  let next = 0;
  const context = { signal: new AbortController().signal, traceId: '', attempt: 1 };
  const worker = async (): Promise<void> => {
    while (next < TASKS) {
      next += 1;
      await limiter();
      await server({ url: 'http://archive.test/', bucket: 'archive' }, context).catch(() => undefined);
    }
  };
  const started = clock.monotonic();
  const endedAt = await toEnd(clock, Promise.all(Array.from({ length: 50 }, worker)));
  return (endedAt - started) / 1000;
}

describe('Z17 3,100 objects, 0.7 s each with a long tail, one in twenty failing', () => {
  it('D5 took the predecessor about two minutes, because its limiter stood in front of the wrong host', async () => {
    const seconds = await predecessor(0.05);
    expect(seconds).toBeGreaterThan(115);
    expect(seconds).toBeLessThan(135);
  });

  it('take less than 35 s unaided: all ok, no wait for the limiter, hardly a request too many', async () => {
    const outcome = await ours(0.05);
    expect(outcome).toMatchObject({ ok: TASKS, failed: 0, limiterWaits: 0, breakerOpened: 0 });
    expect(outcome.seconds).toBeLessThan(35);
    expect(outcome.requests).toBeLessThan(TASKS * 1.1);
  });

  it('N36 one in ten failing trips no breaker, and everything ends ok', async () => {
    const outcome = await ours(0.1);
    expect(outcome).toMatchObject({ ok: TASKS, failed: 0, breakerOpened: 0 });
    expect(outcome.requests).toBeLessThan(TASKS * 1.25);
  });
});
