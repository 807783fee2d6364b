/** What waits and failures cost: the layers of a request over simulated time. */
import { syncBuiltinESMExports } from 'node:module';
import perfHooks, { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Fetch, FetchContext, Layer, WaitReason } from '../../../src/model/fetch.js';
import { Costs } from '../../../src/run/report/costs.js';
import { LoopDelay } from '../../../src/run/report/costs.js';
import { breakerLayer } from '../../../src/http/retry/breaker.js';
import { budgetLayer } from '../../../src/http/retry/budget.js';
import { retryLayer } from '../../../src/http/retry/retry.js';
import { followLayer, measureLayer } from '../../../src/http/transport/measure.js';
import { limitInFlight } from '../../../src/http/throttle/in-flight.js';
import { REQUEST, answer, context } from '../../helpers/requests.js';
import { throttleOf } from '../../helpers/throttles.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const HOUR_MS = 3_600_000;

interface Host {
  /** Of each attempt; the last one for ever. */
  readonly takesMs?: readonly number[];
  /** Of the first attempts; the rest is answered. */
  readonly errors?: readonly CryptodlError[];
}

/** The layer between the costs and a host that takes 100 ms for an answer. */
function costly(layerOf: (clock: VirtualClock) => Layer, { takesMs = [100], errors = [] }: Host = {}) {
  const clock = new VirtualClock();
  const costs = new Costs(clock);
  let asked = 0;
  const host: Fetch = async (_, { signal }) => {
    const attempt = asked;
    asked += 1;
    await clock.sleep(takesMs[Math.min(attempt, takesMs.length - 1)] ?? 0, signal);
    if (errors[attempt] !== undefined) throw errors[attempt];
    return answer();
  };
  const fetch = followLayer([costs])(layerOf(clock)(measureLayer(clock, () => costs.onAttempt())(host)));
  const ask = (within: Partial<FetchContext> = {}): void => {
    fetch(REQUEST, { ...context(), ...within }).catch(() => undefined);
  };
  return { clock, costs, ask };
}

const retried =
  (clock: VirtualClock): Layer =>
  (next) =>
    retryLayer({
      clock,
      retries: 3,
      retryStrategy: 'fixed',
      retryDelayMs: 1000,
      retryFactor: 1,
      retryMaxDelayMs: 1000,
      maxWaitMs: HOUR_MS,
    })(next);

const failure = (retryAfterMs?: number): CryptodlError =>
  new CryptodlError('http-server-error', '503', retryAfterMs === undefined ? {} : { retryAfterMs });

describe('the costs of waits', () => {
  const oneSocket = (clock: VirtualClock): Layer =>
    limitInFlight({ clock, most: 1, groupOf: () => '', wait: 'socket' });

  it('divide each moment among the requests that wait or are on the wire', async () => {
    const { clock, costs, ask } = costly(oneSocket);
    for (let request = 0; request < 4; request += 1) ask();
    await clock.advance(50);
    expect(costs.waiting('socket')).toBe(3);
    await clock.advance(1000);
    // Three of four wait for 100 ms, then two of three, then one of two, then none.
    expect(costs.figures).toEqual({ waits: { socket: Math.round(75 + 200 / 3 + 50) }, failures: {} });
    expect(costs.waiting('socket')).toBe(0);
  });

  it('are the whole time of a request that waits alone, and nothing while there is none', async () => {
    const { clock, costs, ask } = costly(retried, { errors: [failure(), failure()] });
    ask();
    await clock.advance(HOUR_MS);
    expect(costs.figures).toEqual({ waits: { 'back-off': 2000 }, failures: { 'http-server-error': 200 } });
    ask();
    await clock.advance(HOUR_MS);
    expect(costs.figures.waits).toEqual({ 'back-off': 2000 });
  });

  it('are never more than the time that passes', async () => {
    const starts = fc.array(fc.tuple(fc.nat(300), fc.integer({ min: 1, max: 500 })), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(starts, fc.integer({ min: 1, max: 5 }), async (requests, most) => {
        const layerOf = (clock: VirtualClock): Layer =>
          limitInFlight({ clock, most, groupOf: () => '', wait: 'socket' });
        const { clock, costs, ask } = costly(layerOf, { takesMs: requests.map(([, ms]) => ms) });
        const from = clock.monotonic();
        for (const [gap] of requests) {
          await clock.advance(gap);
          ask();
        }
        while (clock.waiting > 0) await clock.advance(1);
        const { socket = 0 } = costs.figures.waits;
        expect(socket).toBeLessThanOrEqual(clock.monotonic() - from);
      }),
    );
  });

  it('end with a wait that is cancelled', async () => {
    const { clock, costs, ask } = costly(oneSocket, { takesMs: [HOUR_MS] });
    const stop = new AbortController();
    ask();
    ask({ signal: stop.signal });
    await clock.advance(1000);
    stop.abort(new CryptodlError('interrupted', 'said by the test'));
    await clock.advance(0);
    expect([costs.waiting('socket'), costs.figures.waits]).toEqual([0, { socket: 500 }]);
  });

  it('distinguish a limit of the program from one of the host, also if a pause begins or ends during the wait', async () => {
    const refused = new CryptodlError('rate-limited', '429', { retryAfterMs: 5000 });
    const slow = { permitsPerSecond: 0.1, burst: 2 };
    const { clock, costs, ask } = costly((virtual) => throttleOf(virtual, { archive: slow }).layer, {
      takesMs: [1000, 3000, 0],
      errors: [refused],
    });
    for (let request = 0; request < 3; request += 1) ask();
    await clock.advance(HOUR_MS);
    // Two on the wire and one waits for 1 s, then the host pauses all for 5 s, of which another request takes the first 2 s.
    expect(costs.figures).toEqual({
      waits: { permit: Math.round(1000 / 3) + 4000, pause: 4000 },
      failures: {},
    });
  });

  it.each<[WaitReason, (clock: VirtualClock) => Layer, CryptodlError[], number]>([
    ['back-off', retried, [failure()], 1000],
    ['pause', retried, [new CryptodlError('rate-limited', '429')], 500],
    ['retry-after', retried, [failure(7000)], 7000],
    [
      'breaker',
      (clock) => (next) =>
        retried(clock)(
          breakerLayer({
            clock,
            breakerOpenMs: 9000,
            blockedWaitMs: 1,
            breakerFailures: 1,
            breakerSuccesses: 1,
            onChange: () => undefined,
            hint: '',
          })(next),
        ),
      [failure()],
      8000,
    ],
    [
      'retry-budget',
      (clock) => (next) =>
        retried(clock)(budgetLayer({ clock, maxWaitMs: HOUR_MS, mostAtOnce: () => 0 })(next)),
      [failure()],
      HOUR_MS,
    ],
  ])('are told of a %s', async (what, layerOf, errors, ms) => {
    const { clock, costs, ask } = costly(layerOf, { errors });
    ask();
    await clock.advance(2 * HOUR_MS);
    const told = costs.figures.waits[what] ?? 0;
    expect(told).toBeGreaterThanOrEqual(ms);
    expect(told).toBeLessThan(ms * 1.2);
  });

  it('do not count attempts that were ended by us or refused by a limit as failures', async () => {
    const errors = (['interrupted', 'banned', 'headers-timeout'] as const).map(
      (code) => new CryptodlError(code, ''),
    );
    const { clock, costs, ask } = costly(() => (next) => next, { errors });
    for (let request = 0; request < 3; request += 1) {
      ask();
      await clock.advance(1000);
    }
    expect(costs.figures.failures).toEqual({ 'headers-timeout': 100 });
  });
});

describe('the delay of the event loop', () => {
  /** A delay with the samples of the test, in place of those of a timer every 20 ms. */
  function sampledDelay() {
    const histograms: RecordableHistogram[] = [];
    const spy = vi.spyOn(perfHooks, 'monitorEventLoopDelay').mockImplementation(() => {
      const histogram = createHistogram();
      histograms.push(histogram);
      return Object.assign(histogram, { enable: () => true, disable: () => true });
    });
    syncBuiltinESMExports();
    const delay = new LoopDelay();
    spy.mockRestore();
    syncBuiltinESMExports();
    const sample = (ms: number, count: number): void => {
      for (const histogram of histograms)
        for (let sampled = 0; sampled < count; sampled += 1) histogram.record(ms * 1_000_000);
    };
    return { delay, sample };
  }

  it('is a sample without its interval, and nothing before the first', () => {
    const { delay, sample } = sampledDelay();
    expect(delay.figures).toMatchObject({ p50: 0, p99: 0, most: 0 });
    delay.start();
    sample(19, 1);
    sample(25, 97);
    sample(120, 1);
    sample(270, 1);
    delay.stop();
    expect(delay.figures).toMatchObject({ p50: 5, p99: 100, most: 250 });
    expect(delay.figures.busyShare).toBeGreaterThanOrEqual(0);
  });

  it('is late by the mean of the samples since the hundredth call before', () => {
    const { delay, sample } = sampledDelay();
    const afterCalls = (count: number): boolean =>
      Array.from({ length: count }, () => delay.isLate()).at(-1) ?? false;
    sample(50, 10);
    expect(afterCalls(99)).toBe(false);
    expect(afterCalls(1)).toBe(true);
    sample(30, 10);
    expect(afterCalls(99)).toBe(true);
    expect(afterCalls(1)).toBe(false);
    expect(afterCalls(100)).toBe(false);
  });
});
