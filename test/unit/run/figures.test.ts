import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import { Costs } from '../../../src/run/report/costs.js';
import { Figures } from '../../../src/run/report/figures.js';
import { LoopDelay } from '../../../src/run/report/costs.js';
import { networkFigures } from '../../../src/run/report/network-figures.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const retryEvent = (
  usesAttempt: boolean,
  code: ErrorCode = 'connection-lost',
): Parameters<Figures['onRetry']>[0] => ({ usesAttempt, error: new CryptodlError(code, 'said by the test') });

/** A percentile is the value of a whole rank; which one of the two beside it, is a matter of taste. */
function percentileBounds(values: readonly number[], share: number): { least: number; most: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (rank: number): number => sorted[Math.max(0, rank - 1)] ?? 0;
  return { least: at(Math.floor(sorted.length * share)), most: at(Math.ceil(sorted.length * share)) };
}

const SHARES = [
  ['p50', 0.5],
  ['p95', 0.95],
  ['p99', 0.99],
] as const;

function attempt(ms: number, firstByteMs: number | undefined, error?: unknown) {
  const request = { url: 'http://archive.test/data.zip', bucket: 'archive' };
  return { request, sentAtMs: 1000, endedAtMs: 1000 + ms, firstByteMs, status: firstByteMs && 200, error };
}

describe('the figures of a run', () => {
  it('are all nothing before anything was sent', () => {
    const none = { p50: 0, p95: 0, p99: 0 };
    expect(new Figures().figures).toEqual({
      requests: 0,
      inFlight: 0,
      mostInFlight: 0,
      retries: { total: 0, requests: 0, succeeded: 0, reasons: {}, ...none },
      firstAttempts: { requests: 0, failed: 0 },
      firstByteMs: none,
      attemptMs: none,
      errors: {},
      hosts: {},
    });
  });

  it('count the requests in flight, and their maximum', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 100 }), (begins) => {
        const figures = new Figures();
        let inFlight = 0;
        let most = 0;
        let requests = 0;
        for (const isBegin of begins) {
          if (isBegin) {
            figures.begun();
            requests += 1;
            inFlight += 1;
            most = Math.max(most, inFlight);
          } else if (inFlight > 0) {
            figures.ended(attempt(5, 5));
            inFlight -= 1;
          }
        }
        expect(figures.figures).toMatchObject({ requests, inFlight, mostInFlight: most });
      }),
    );
  });

  it('have percentiles within a thousandth of the exact ones, and a millisecond', () => {
    const times = fc.array(fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 600_000 })), {
      minLength: 1,
      maxLength: 200,
    });
    fc.assert(
      fc.property(times, (all) => {
        const figures = new Figures();
        for (const ms of all) {
          figures.begun();
          figures.ended(attempt(ms * 2, ms));
        }
        const { firstByteMs, attemptMs } = figures.figures;
        for (const [name, share] of SHARES) {
          const { least, most } = percentileBounds(all, share);
          expect(firstByteMs[name]).toBeGreaterThanOrEqual(least * 0.999 - 1);
          expect(firstByteMs[name]).toBeLessThanOrEqual(most * 1.001 + 1);
          expect(attemptMs[name]).toBeGreaterThanOrEqual(least * 2 * 0.999 - 1);
          expect(attemptMs[name]).toBeLessThanOrEqual(most * 2 * 1.001 + 1);
        }
      }),
    );
  });

  it('take the time of answered attempts only, and of first bytes of all that had one', () => {
    const figures = new Figures();
    for (const end of [
      attempt(10, 5),
      attempt(9000, undefined, new CryptodlError('connect-timeout', 'x')),
      attempt(9000, 7000, new CryptodlError('idle-timeout', 'x')),
    ]) {
      figures.begun();
      figures.ended(end);
    }
    expect(figures.figures.attemptMs).toEqual({ p50: 10, p95: 10, p99: 10 });
    expect(figures.figures.firstByteMs.p50).toBe(5);
    expect(figures.figures.firstByteMs.p99).toBeGreaterThanOrEqual(7000);
  });

  it('count failed attempts by error code, and no errors from elsewhere', () => {
    const figures = new Figures();
    const codes: ErrorCode[] = ['connection-lost', 'http-server-error', 'connection-lost'];
    for (const error of [...codes.map((code) => new CryptodlError(code, 'x')), new Error('bug'), undefined]) {
      figures.begun();
      figures.ended(attempt(5, 5, error));
    }
    expect(figures.figures.errors).toEqual({ 'connection-lost': 2, 'http-server-error': 1 });
    expect(figures.figures).toMatchObject({ requests: 5, inFlight: 0 });
  });

  it('tell how many of the retried requests came to a good end, and how many retries a request takes', () => {
    const requests = fc.array(fc.tuple(fc.nat(9), fc.boolean()), { minLength: 1, maxLength: 100 });
    fc.assert(
      fc.property(requests, (all) => {
        const figures = new Figures();
        for (const [retries, isOk] of all) {
          for (let retry = 0; retry < retries; retry += 1) figures.onRetry(retryEvent(true));
          figures.onRetry(retryEvent(false));
          figures.onRequestEnd(retries, isOk ? undefined : new CryptodlError('connection-lost', 'x'));
        }
        const extra = all.map(([retries]) => retries);
        const told = figures.figures.retries;
        expect(told).toMatchObject({
          total: extra.reduce((sum, retries) => sum + retries, 0),
          requests: extra.filter((retries) => retries > 0).length,
          succeeded: all.filter(([retries, isOk]) => retries > 0 && isOk).length,
        });
        for (const [name, share] of SHARES) {
          const { least, most } = percentileBounds(extra, share);
          expect(told[name]).toBeGreaterThanOrEqual(least);
          expect(told[name]).toBeLessThanOrEqual(most);
        }
      }),
    );
  });

  it('count requests whose first attempt failed, whether a retry helped or not, but only for failures of the host', () => {
    const figures = new Figures();
    const error = (code: ErrorCode): CryptodlError => new CryptodlError(code, 'x');
    figures.onRequestEnd(0);
    figures.onRequestEnd(2);
    figures.onRequestEnd(2, error('checksum-mismatch'));
    figures.onRequestEnd(0, error('connection-lost'));
    for (const code of ['interrupted', 'time-over', 'http-forbidden'] as const)
      figures.onRequestEnd(0, error(code));
    expect(figures.figures.firstAttempts).toEqual({ requests: 4, failed: 3 });
  });

  it('have the statuses, the times and the breaker of each host', () => {
    const figures = new Figures();
    const of = (host: string, status: number | undefined, error?: unknown): void => {
      figures.begun();
      const request = { url: `https://${host}/a/b.zip`, bucket: 'archive' };
      figures.ended({ ...attempt(40, 20, error), request, status });
    };
    of('one.test', 200);
    of('one.test', 404);
    of('one.test', 503, new CryptodlError('http-server-error', 'x'));
    of('two.test:8443', undefined, new CryptodlError('connect-timeout', 'x'));
    figures.onBreaker('two.test:8443', 'open', () => 4999.6);
    figures.onBreaker('three.test', 'half-open', () => 9);
    figures.onBreaker('one.test', 'open', () => 9);
    figures.onBreaker('one.test', 'closed', () => 9);
    const none = { p50: 0, p95: 0, p99: 0 };
    expect(figures.figures.hosts).toEqual({
      'one.test': {
        statuses: { 200: 1, 404: 1, 503: 1 },
        attemptMs: { p50: 40, p95: 40, p99: 40 },
        breaker: 'closed',
      },
      'two.test:8443': { statuses: { none: 1 }, attemptMs: none, breaker: 'open' },
      'three.test': { statuses: {}, attemptMs: none, breaker: 'half-open' },
    });
    expect(figures.openBreakers).toEqual([
      { host: 'two.test:8443', state: 'open', leftMs: 5000 },
      { host: 'three.test', state: 'half-open', leftMs: 0 },
    ]);
  });

  it('count retries by the error before them, without waits for a limit', () => {
    const figures = new Figures();
    figures.onRetry(retryEvent(true, 'http-server-error'));
    figures.onRetry(retryEvent(true, 'connection-lost'));
    figures.onRetry(retryEvent(true, 'connection-lost'));
    figures.onRetry(retryEvent(false, 'rate-limited'));
    expect(figures.figures.retries.reasons).toEqual({ 'http-server-error': 1, 'connection-lost': 2 });
  });
});

describe('the sockets of the network figures', () => {
  it('count a request as queued that waits in the pool, or in front of it for a socket', () => {
    const clock = new VirtualClock();
    const costs = new Costs(clock);
    for (const wait of ['socket', 'socket-of-host', 'socket-of-host', 'permit'] as const) costs.onWait(wait);
    const used = { sockets: 8, busy: 8, queued: 10, most: 8 };
    const stack = {
      throttle: { figures: { refusals: 0 } },
      pools: { use: () => used, dns: () => ({}) },
      proxies: () => [],
    };
    const network = networkFigures({
      clock,
      stack: stack as unknown as Parameters<typeof networkFigures>[0]['stack'],
      figures: new Figures(),
      costs,
      concurrency: { limit: 8, retreats: 0, settled: undefined },
      loopDelay: new LoopDelay(),
    });
    expect(network().pool).toEqual({ ...used, queued: 13 });
  });
});
