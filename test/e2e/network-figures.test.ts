/** What a run says of its wire: in its summary and its log, by the server's own count; and of its proxy nothing. */
import { readFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 8 --json',
});

const logged = (path: string): Record<string, unknown>[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

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

  it('has figures of attempts, sockets and requests in flight that fit each other', async () => {
    refuseSome();
    const { summary } = await scene.vision('--concurrency 4');
    const { mostInFlight, attemptMs, pool } = summary['network'] as {
      mostInFlight: number;
      attemptMs: Record<'p50' | 'p95' | 'p99', number>;
      pool: { sockets: number; most: number };
    };
    // A zip and its sidecar for each of the four.
    expect(mostInFlight).toBeGreaterThan(1);
    expect(mostInFlight).toBeLessThanOrEqual(8);
    expect(attemptMs.p50).toBeGreaterThan(0);
    expect(attemptMs.p50).toBeLessThanOrEqual(attemptMs.p95);
    expect(attemptMs.p95).toBeLessThanOrEqual(attemptMs.p99);
    expect(pool.sockets).toBeLessThanOrEqual(pool.most);
  });

  it('is in its log: each retry with its ids, its number, its error and its host; each attempt as it went', async () => {
    const { refused } = refuseSome();
    const log = join(scene.scratch, 'run.log');
    const result = await scene.vision(`--concurrency 4 --log-file ${log} --log-level trace`);
    expect(result.code).toBe(0);
    const lines = logged(log);
    const retries = lines.filter(({ msg }) => msg === 'retry');
    expect(retries.map(({ url }) => decodeURIComponent(new URL(String(url)).pathname)).sort()).toEqual(
      refused.toSorted(),
    );
    for (const line of retries) {
      expect(line).toMatchObject({
        retry_attempt: 1,
        original_error: 'http-server-error',
        upstream: new URL(scene.archive.url).host,
        attemptId: `${String(line['traceId'])}/1`,
        message: expect.stringContaining('503: SlowDown'),
      });
      // The attempt that failed and the one that did not are found by the ids.
      const attempts = lines.filter(({ msg, traceId }) => msg === 'attempt' && traceId === line['traceId']);
      expect(attempts.map(({ attemptId, error }) => [attemptId, error])).toEqual([
        [`${String(line['traceId'])}/1`, 'http-server-error'],
        [`${String(line['traceId'])}/2`, undefined],
      ]);
    }
    expect(lines.filter(({ msg }) => msg === 'attempt')).toHaveLength(scene.archive.requests.length);
    expect(result.events.filter(({ event }) => event === 'retry')).toHaveLength(refused.length);
  });
});

describe('a run behind a proxy', () => {
  const SECRET = 's3cr3t';
  let proxied: { path: string; authorization: string | undefined }[] = [];
  const proxy = createServer((incoming, response) => {
    const { pathname, search, host } = new URL(incoming.url ?? '');
    proxied.push({ path: host + pathname, authorization: incoming.headers['proxy-authorization'] });
    // Without connections that stay open beyond their answer.
    ask(`${scene.archive.url}${pathname}${search}`, { agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    }).end();
  });
  let url = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
    url = `http://user:${SECRET}@127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  afterEach(() => {
    proxied = [];
  });

  const FAR = ['--archive-url', 'http://archive.invalid'];

  it.each<[string, readonly string[], Record<string, string>]>([
    ['--proxy', ['--proxy', 'URL'], {}],
    ['HTTP_PROXY', [], { HTTP_PROXY: 'URL' }],
    ['http_proxy', [], { http_proxy: 'URL', NO_PROXY: '127.0.0.1,other.test' }],
    [
      'CRYPTODL_PROXY, which beats HTTP_PROXY',
      [],
      { CRYPTODL_PROXY: 'URL', HTTP_PROXY: 'http://127.0.0.1:1' },
    ],
  ])('gets everything through %s, and sends the password only to the proxy', async (name, flags, env) => {
    const given = (text: string): string => (text === 'URL' ? url : text);
    const denied = '<Error><Code>AccessDenied</Code></Error>';
    scene.refuse((path) => path.endsWith('BTCUSDT-1h-2026-11-15.zip'), 403, denied);
    const log = join(scene.scratch, `${name}.log`);
    const failures = join(scene.scratch, `${name}.jsonl`);
    const told = ['--log-file', log, '--log-level', 'trace', '--failures', failures];
    const result = await scene.vision([...FAR, ...flags.map(given), ...told], {
      env: Object.fromEntries(Object.entries(env).map(([variable, value]) => [variable, given(value)])),
    });
    expect(result.code).toBe(4);
    expect(result.summary['outcomes']).toMatchObject({ ok: 15, failed: 1 });
    expect(proxied).toHaveLength(scene.archive.requests.length);
    expect(proxied.every(({ path }) => path.startsWith('archive.invalid/'))).toBe(true);
    const basic = `Basic ${Buffer.from(`user:${SECRET}`).toString('base64')}`;
    expect(new Set(proxied.map(({ authorization }) => authorization))).toEqual(new Set([basic]));
    const report = readFileSync(failures, 'utf8');
    const all = [result.stdout, result.stderr, readFileSync(log, 'utf8'), report].join('\n');
    expect(all).not.toContain(SECRET);
    expect(all).not.toContain(basic);
    expect(JSON.parse(report.split('\n')[0] ?? '')).not.toHaveProperty('options.proxy');
  });

  it.each<[string, readonly string[], Record<string, string>]>([
    ['--proxy none', ['--proxy', 'none'], {}],
    ['NO_PROXY', [], { NO_PROXY: '127.0.0.1' }],
  ])('asks directly with %s', async (_, flags, env) => {
    const result = await scene.vision(flags, { env: { HTTP_PROXY: url, ...env } });
    expect(result.code).toBe(0);
    expect(proxied).toEqual([]);
  });

  it('is refused in one line with the right form, with exit code 2, when the variable holds no address', async () => {
    const env = { https_proxy: `user:${SECRET}@proxy.test` };
    const result = await scene.vision([], { env });
    expect(result.code).toBe(2);
    expect(result.stderr).toBe(
      'cryptodl: https_proxy is not the address of a proxy\n  https_proxy=http://127.0.0.1:3128\n',
    );
    expect(result.stdout).not.toContain(SECRET);
    expect(scene.archive.requests).toEqual([]);
    for (const verb of ['verify', 'list'])
      expect((await cryptodl([verb, '--out', result.lake], { env })).code).toBe(2);
  });

  it('ends at once when the proxy wants another password: it would want it for every object', async () => {
    const wanting = createServer((_, response) => response.writeHead(407).end());
    await new Promise<void>((resolve) => void wanting.listen(0, '127.0.0.1', resolve));
    const { port } = wanting.address() as AddressInfo;
    const result = await scene.vision([...FAR, '--proxy', `http://user:${SECRET}@127.0.0.1:${port}`]);
    wanting.closeAllConnections();
    wanting.close();
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('the proxy answered 407 to a request for archive.invalid');
    expect(result.stderr).toContain('http://user:password@host:port');
    expect(result.stdout + result.stderr).not.toContain(SECRET);
  });
});
