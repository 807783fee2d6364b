/** --max-duration: what is begun, what goes on, and which waits end. */
import { describe, expect, it } from 'vitest';
import { Deadline } from '../../../src/run/session/deadline.js';
import type { Fetch } from '../../../src/model/fetch.js';
import { retryLayer } from '../../../src/http/retry/retry.js';
import { RateMeter } from '../../../src/http/throttle/meter.js';
import { QuotaBucket } from '../../../src/http/throttle/quota-bucket.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { answer, context, refusal, REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

function deadlineAfter(maxDurationMs: number | undefined) {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const deadline = new Deadline({ clock, maxDurationMs, stop });
  return { clock, stop, deadline };
}

/** What became of it: a value, or the code and the message of the error. */
async function become(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return error instanceof CryptodlError ? [error.code, error.message] : error;
  }
}

describe('before the work', () => {
  it('ends the run, as time-over', async () => {
    const { clock, stop, deadline } = deadlineAfter(1000);
    await clock.advance(999);
    expect(stop.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(stop.signal.reason).toMatchObject({ code: 'interrupted' });
    expect(deadline.isEarly).toBe(true);
    expect(deadline.asEarlyEnd(stop.signal.reason)).toMatchObject({
      code: 'time-over',
      message: '--max-duration 1s ended before the work started',
    });
  });

  it('other errors and other ends do not change', async () => {
    const { clock, stop, deadline } = deadlineAfter(1000);
    const interrupted = new CryptodlError('interrupted', 'ended by SIGINT');
    stop.abort(interrupted);
    await clock.advance(5000);
    expect(deadline.asEarlyEnd(interrupted)).toBe(interrupted);
    const early = deadlineAfter(10);
    await early.clock.advance(10);
    const usage = new CryptodlError('usage', 'no');
    expect(early.deadline.asEarlyEnd(usage)).toBe(usage);
  });

  it('without a last moment there is none', async () => {
    const { clock, stop, deadline } = deadlineAfter(undefined);
    await clock.advance(1e9);
    expect([stop.signal.aborted, deadline.waitSignal, deadline.refusal()]).toEqual([
      false,
      undefined,
      undefined,
    ]);
    expect(clock.timersSet).toBe(0);
  });
});

describe('during the work', () => {
  it('wakes a sleep between rounds, which is no error; an end of the run is one', async () => {
    const { clock, deadline } = deadlineAfter(1000);
    deadline.beginWork();
    const sleeping = become(deadline.sleep(30_000));
    await clock.advance(1000);
    expect(await sleeping).toBe(undefined);
    const other = deadlineAfter(1000);
    other.deadline.beginWork();
    const ended = become(other.deadline.sleep(30_000));
    other.stop.abort(new CryptodlError('interrupted', 'ended'));
    expect(await ended).toEqual(['interrupted', 'ended']);
  });
});

describe('waits of requests', () => {
  function bucketOf(clock: VirtualClock): QuotaBucket {
    const meter = new RateMeter({ permitsPerSecond: 1, burst: 1 }, clock.monotonic());
    return new QuotaBucket({ clock, name: 'archive', meter, maxWaitMs: 3_600_000 });
  }

  it('for a permit end a moment later, while a free permit is still given', async () => {
    const { clock, stop, deadline } = deadlineAfter(1000);
    deadline.beginWork();
    const bucket = bucketOf(clock);
    const take = (): Promise<unknown> =>
      become(bucket.take({ weight: 1, priority: 'normal' }, stop.signal, deadline.waitSignal));
    await take();
    bucket.pause(600_000);
    const waiting = take();
    await clock.advance(2999);
    const order = await Promise.race([waiting, Promise.resolve('waits')]);
    expect(order).toBe('waits');
    await clock.advance(1);
    expect(await waiting).toEqual(['time-over', '--max-duration 1s ended']);
    expect(await take()).toEqual(['time-over', '--max-duration 1s ended']);
    await clock.advance(700_000);
    expect(await take()).toBe(undefined);
  });

  it('for a retry end, and name their reason; an answer that is arriving still counts', async () => {
    const { clock, stop, deadline } = deadlineAfter(1000);
    deadline.beginWork();
    const wire: Fetch = async ({ url }) => {
      if (url.endsWith('slow')) {
        await clock.sleep(60_000);
        return answer('there');
      }
      throw new CryptodlError('http-server-error', 'host answered 503');
    };
    const tries = retryLayer({
      clock,
      retries: 5,
      retryDelayMs: 600_000,
      retryMaxDelayMs: 600_000,
      retryFactor: 1,
      retryStrategy: 'fixed',
      maxWaitMs: 3_600_000,
      waitSignal: deadline.waitSignal,
    });
    const fetch = tries(wire);
    const ask = (name: string): Promise<unknown> =>
      become(
        fetch({ url: `http://host/${name}`, bucket: 'archive' }, { signal: stop.signal, traceId: name }),
      );
    const slow = ask('slow');
    const failing = ask('failing');
    await clock.advance(3000);
    expect(await failing).toEqual([
      'time-over',
      '--max-duration 1s ended; the request still waited: host answered 503',
    ]);
    await clock.advance(60_000);
    expect(await slow).toMatchObject({ status: 200 });
  });

  /** The layers of a request whose first failures are `failures`, and which then waits for its turn. */
  function waitingForTurn(failures: readonly string[] = []) {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const deadline = new Deadline({ clock, maxDurationMs: 1000, stop });
    deadline.beginWork();
    const left = [...failures];
    const turn: Fetch = async (_, inner) => {
      const failure = left.shift();
      if (failure !== undefined) throw new CryptodlError('http-server-error', failure);
      await clock.sleep(600_000, inner.waitSignal);
      return answer();
    };
    const delays = { retryFactor: 1, retryDelayMs: 100, retryMaxDelayMs: 100, maxWaitMs: 3_600_000 };
    const { waitSignal } = deadline;
    const fetch = retryLayer({ clock, ...delays, retryStrategy: 'fixed', retries: 5, waitSignal })(turn);
    return { clock, stop, ask: () => refusal(fetch(REQUEST, context(stop.signal))) };
  }

  it('for a turn end, each with an error of its own, because each counts its attempts', async () => {
    const { clock, ask } = waitingForTurn();
    const both = Promise.all([ask(), ask()]);
    await clock.advance(3000);
    const [one, other] = await both;
    expect([one.code, one.message]).toEqual([
      'time-over',
      '--max-duration 1s ended; the request still waited to be sent',
    ]);
    expect(other).toMatchObject({ code: one.code, message: one.message });
    expect(other).not.toBe(one);
  });

  it('for the turn of a retry end with the last failure', async () => {
    const { clock, ask } = waitingForTurn(['host answered 503', 'host answered 502']);
    const ended = ask();
    await clock.advance(3000);
    expect(await ended).toMatchObject({
      code: 'time-over',
      message: '--max-duration 1s ended; the request still waited: host answered 502',
      attempts: 2,
      cause: { code: 'http-server-error' },
    });
  });

  it.each<[string, string[]]>([
    ['for a turn', []],
    ['for the turn of a retry', ['host answered 503']],
  ])('%s end with the run, for its reason', async (_, failures) => {
    const { clock, stop, ask } = waitingForTurn(failures);
    const ended = ask();
    await clock.advance(500);
    const interrupted = new CryptodlError('interrupted', 'ended by SIGINT');
    stop.abort(interrupted);
    expect(await ended).toBe(interrupted);
  });
});
