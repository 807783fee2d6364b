/** What a run says of its wire: in its summary and its log, by the server's own count; and of its proxy nothing. */
import { describe, expect, it } from 'vitest';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 8 --json',
});

/** The first request of every third zip is refused. */
function refuseSome(): { refused: string[] } {
  const seen = new Set<string>();
  const refused: string[] = [];
  scene.archive.fault = (path, _, response) => {
    if (!isZip(path) || seen.has(path)) return false;
    seen.add(path);
    if (seen.size % 3 !== 0) return false;
    refused.push(path);
    response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>');
    return true;
  };
  return { refused };
}

describe('the network of a run', () => {
  it('is in its summary as the server counted it', async () => {
    const { refused } = refuseSome();
    const result = await scene.vision('--concurrency 4');
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('16 ok')]);
    const { summary } = result;
    const percentiles = { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) };
    const count = refused.length;
    expect(count).toBe(5);
    expect(summary['network']).toEqual({
      requests: scene.archive.requests.length,
      inFlight: 0,
      mostInFlight: expect.any(Number),
      retries: {
        total: count,
        requests: count,
        succeeded: count,
        reasons: { 'http-server-error': count },
        p50: 0,
        p95: 1,
        p99: 1,
      },
      firstAttempts: { requests: scene.archive.requests.length - count, failed: count },
      proxies: [],
      firstByteMs: percentiles,
      attemptMs: percentiles,
      errors: { 'http-server-error': count },
      hosts: {
        [new URL(scene.archive.url).host]: {
          statuses: { 200: scene.archive.requests.length - count, 503: count },
          attemptMs: percentiles,
          breaker: 'closed',
        },
      },
      concurrency: 4,
      retreats: 0,
      limiter: { waits: 0, waitedMs: 0, refusals: 0, refusalsPerHour: 0, buckets: {} },
      pool: { sockets: expect.any(Number), busy: 0, queued: 0, most: expect.any(Number) },
      // The archive has an address, no name.
      dns: { lookups: 0, hits: 0, misses: 0, failures: 0, ms: 0 },
      costMs: { waits: expect.any(Object), failures: expect.any(Object) },
      loopDelayMs: {
        p50: expect.any(Number),
        p99: expect.any(Number),
        most: expect.any(Number),
        busyShare: expect.any(Number),
      },
    });
    expect(summary).toMatchObject({ requests: scene.archive.requests.length, retries: count });
  });
});
