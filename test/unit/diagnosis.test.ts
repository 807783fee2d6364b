import { describe, expect, it } from 'vitest';
import { FLAG_NAMES } from '../../src/options/flags.js';
import { resolveOptions } from '../../src/options/resolve.js';
import { diagnosisLines, firstAttemptWarning } from '../../src/report/diagnosis.js';
import type { Diagnosed, Symptoms } from '../../src/report/diagnosis.js';

const NONE = { p50: 0, p95: 0, p99: 0 };
const QUIET: Symptoms = {
  retries: { total: 0, requests: 0, succeeded: 0, reasons: {}, ...NONE },
  firstAttempts: { requests: 100, failed: 0 },
  firstByteMs: NONE,
  attemptMs: NONE,
  costMs: { waits: {}, failures: {} },
  limiter: { waits: 0, refusals: 0, refusalsPerHour: 0, buckets: {} },
  dns: { misses: 1, failures: 0, ms: 5 },
  loopDelayMs: { p50: 0, p99: 20, most: 100, busyShare: 0.5 },
};

/** `--flag value` pairs as the command line has them. */
function valuesOf(flags: readonly string[]): Record<string, string[]> {
  const values: Record<string, string[]> = {};
  for (let at = 0; at < flags.length; at += 2) values[flags[at]?.slice(2) ?? ''] = [flags[at + 1] ?? ''];
  return values;
}

/** Of a run of 100 s. */
function lines(network: Partial<Symptoms>, flags: readonly string[] = [], elapsedMs = 100_000): string[] {
  const knobs: Diagnosed['knobs'] = resolveOptions('vision', [
    { origin: 'flag', values: valuesOf(flags), nameOf: (name) => name },
  ]).options;
  return diagnosisLines({ network: { ...QUIET, ...network }, knobs, elapsedMs });
}

const waits = (costs: Symptoms['costMs']['waits']): Partial<Symptoms> => ({
  costMs: { waits: costs, failures: {} },
});
const failures = (costs: Symptoms['costMs']['failures']): Partial<Symptoms> => ({
  costMs: { waits: {}, failures: costs },
});
const retries = (requests: number, succeeded: number): Partial<Symptoms> => ({
  retries: { ...QUIET.retries, requests, succeeded },
});
const bucket = (isChosen: boolean, waitedMs = 1) => ({ waits: 1, refusals: 0, waitedMs, isChosen });

describe('the diagnosis of a run', () => {
  it('has the proxies one by one, and the egress group', () => {
    const proxy = { requests: 1200, failures: 0, refusals: 0, isDead: false, pausedMs: 0 };
    const proxies = [
      { ...proxy, proxy: 'a:1' },
      { ...proxy, proxy: 'b:1', failures: 3, isDead: true },
      { ...proxy, proxy: 'c:1', refusals: 1, pausedMs: 90_000 },
    ];
    expect(lines({ proxies })).toEqual([
      '  proxies    a:1: 1,200 requests',
      '             b:1: 1,200 requests, 3 failed at the proxy, does not work',
      '             c:1: 1,200 requests, 1 refused by a host, paused for another 90s',
    ]);
    const group = { name: 'office', members: 6, isShared: true };
    const limiter = { ...QUIET.limiter, group };
    expect(lines({ limiter })).toEqual(['  group      office: 6 programs']);
    expect(lines({ limiter: { ...limiter, group: { ...group, isShared: false } } })).toEqual([
      '  group      office: 6 programs, without Redis at the end',
    ]);
  });

  it('of a run that nothing held up is empty', () => {
    expect(lines({})).toEqual([]);
  });

  it.each<[string, Partial<Symptoms>, Partial<Symptoms>]>([
    ['permits', waits({ permit: 6000, pause: 4001 }), waits({ permit: 6000, pause: 4000 })],
    [
      'retries',
      {
        costMs: {
          waits: { 'back-off': 2000, 'retry-after': 2000, 'retry-budget': 2000, breaker: 2000 },
          failures: { 'connection-lost': 1001, 'body-damaged': 1000 },
        },
      },
      waits({ 'back-off': 10_000 }),
    ],
    [
      'look-ups',
      { dns: { misses: 2, failures: 1, ms: 10_001 } },
      { dns: { misses: 2, failures: 1, ms: 10_000 } },
    ],
  ])('tells of %s from a tenth of the run on', (_, above, below) => {
    expect([lines(above).length, lines(below).length]).toEqual([1, 0]);
  });

  it('says how many retries helped only when there were some', () => {
    const cost = waits({ 'back-off': 20_000 });
    expect(lines({ ...cost, ...retries(0, 0) })).toEqual([
      expect.stringMatching(/^ {2}retries {4}failed attempts and waits cost 20s of /),
    ]);
    expect(lines({ ...cost, ...retries(4, 3) })).toEqual([
      expect.stringMatching(
        /^ {2}retries {4}3 of 4 retried requests with success; failed attempts and waits cost /,
      ),
    ]);
  });

  it('tells of nothing that costs less than a second', () => {
    expect(lines(waits({ permit: 999 }), [], 1000)).toEqual([]);
    expect(lines(waits({ permit: 1000 }), [], 1000)).not.toEqual([]);
  });

  it('gives its cost in numbers', () => {
    const told = lines({
      ...waits({ permit: 12_000, breaker: 11_000 }),
      ...retries(40, 38),
      limiter: { waits: 1492, refusals: 6, refusalsPerHour: 1216, buckets: { archive: bucket(false) } },
      dns: { misses: 3, failures: 2, ms: 20_000 },
    });
    expect(told).toEqual([
      '  waited     for permits: 1,492 requests, 12s of 100s',
      '  refused    6 times by a limit of the host (429, 418), 1,216 per hour',
      '  retries    38 of 40 retried requests with success; failed attempts and waits cost 11s of 100s',
      '  names      3 look-ups took 20s of 100s, 2 of them failed',
    ]);
  });

  it('counts refusals that cost nothing as well', () => {
    const limiter = { waits: 0, refusals: 1, refusalsPerHour: 36, buckets: {} };
    expect(lines({ limiter })).toEqual([
      '  refused    1 time by a limit of the host (429, 418), 36 per hour',
    ]);
  });
});

describe('the bottleneck', () => {
  /** What stands in its line, if there is one. */
  const bottleneck = (network: Partial<Symptoms>, flags: readonly string[] = []): string | undefined =>
    lines(network, flags)
      .find((line) => line.startsWith('  bottleneck '))
      ?.slice('  bottleneck '.length);

  it('is named from a quarter of the run on, and only the largest', () => {
    const flags = ['--pool-limit', '1', '--breaker-open', '20s'];
    expect(bottleneck(waits({ socket: 25_000 }), flags)).toBeUndefined();
    expect(bottleneck(waits({ socket: 25_001 }), flags)).toBe(
      '--pool-limit 1, 25 % of the run: a higher limit allows more requests at once',
    );
    expect(bottleneck(waits({ socket: 30_000, breaker: 31_000 }), flags)).toBe(
      '--breaker-open 20s, 31 % of the run: a shorter time tries a failed host again sooner',
    );
  });

  it.each([
    [false, 'the limit of the exchange for archive, 50 % of the run: no flag raises it'],
    [
      true,
      'your limit for archive, 50 % of the run: a higher --limits or --requests-per-minute, or a shorter --request-interval, raises it',
    ],
  ])('is the limit of the bucket with the longest waits; the user chose it: %s', (isChosen, text) => {
    const buckets = { listing: bucket(!isChosen, 5), archive: bucket(isChosen, 10) };
    const limiter = { waits: 2, refusals: 0, refusalsPerHour: 0, buckets };
    expect(bottleneck({ ...waits({ permit: 50_000 }), limiter })).toBe(text);
  });

  const SHORTER = 'a shorter timeout ends hanging requests sooner';
  const LONGER = 'a longer timeout waits for a slow host';

  it.each<[string, Partial<Symptoms>, string]>([
    [
      'headers-timeout',
      { ...retries(10, 5), firstByteMs: { ...NONE, p99: 80 } },
      `${SHORTER}; 99 of 100 answers took 80ms at most`,
    ],
    ['headers-timeout', { ...retries(10, 4), firstByteMs: { ...NONE, p99: 80 } }, LONGER],
    ['headers-timeout', { ...retries(10, 10), firstByteMs: { ...NONE, p99: 7500 } }, LONGER],
    ['headers-timeout', retries(0, 0), LONGER],
    ['total-timeout', { ...retries(10, 10), attemptMs: { ...NONE, p99: 30_000 } }, LONGER],
    ['idle-timeout', retries(10, 10), SHORTER],
    ['connect-timeout', retries(10, 1), LONGER],
  ])('is --%s, in the direction that helps: %o', (flag, network, advice) => {
    const said = bottleneck({ ...failures({ [flag]: 50_000 }), ...network });
    const value = { 'headers-timeout': '15s', 'total-timeout': '60s', 'idle-timeout': '10s' }[flag] ?? '5s';
    expect(said).toBe(`--${flag} ${value}, 50 % of the run: ${advice}`);
  });

  it('is a concurrency that the user fixed, or a host in trouble, when retries wait for successes', () => {
    const waiting = waits({ 'retry-budget': 50_000 });
    expect(bottleneck(waiting, ['--concurrency', '50'])).toContain('a lower --concurrency, or auto,');
    expect(bottleneck(waiting)).toContain('no flag changes that');
  });

  it('is the CPU of a run of at least ten seconds that is busy and late, unless a wait cost more', () => {
    const loop = (p99: number, busyShare: number): Partial<Symptoms> => ({
      loopDelayMs: { p50: 1, p99, most: p99, busyShare },
    });
    expect(bottleneck(loop(51, 0.75))).toBe(
      'the CPU: this process was busy, and its work was up to 51ms late, 75 % of the run: a faster CPU helps; no flag does',
    );
    expect(bottleneck(loop(50, 0.9))).toBeUndefined();
    expect(bottleneck(loop(51, 0.74))).toBeUndefined();
    expect(lines(loop(51, 0.9), [], 9999)).toEqual([]);
    expect(bottleneck({ ...loop(51, 0.75), ...waits({ pause: 80_000 }) })).toContain('refusals by a limit');
  });

  it('names only flags that there are', () => {
    const all = [
      waits({ pause: 50_000 }),
      waits({ 'back-off': 50_000 }),
      waits({ 'retry-after': 50_000 }),
      waits({ 'socket-of-host': 50_000 }),
      waits({ 'retry-budget': 50_000 }),
    ];
    const named = all.flatMap(
      (network) => bottleneck(network, ['--concurrency', '9'])?.match(/--[a-z-]+/g) ?? [],
    );
    expect(named).toEqual([
      '--request-interval',
      '--limits',
      '--retry-delay',
      '--retry-max-delay',
      '--pool-limit-per-host',
      '--concurrency',
    ]);
    expect(named.map((flag) => flag.slice(2)).filter((name) => !FLAG_NAMES.includes(name as never))).toEqual(
      [],
    );
  });
});

describe('the warning of failed first attempts', () => {
  it.each([
    [1000, 10, '1 % of first attempts failed (10 of 1,000 requests)'],
    [1001, 10, undefined],
    [12, 9, undefined],
    [12, 10, '83.3 % of first attempts failed (10 of 12 requests)'],
    [40_000, 2000, '5 % of first attempts failed (2,000 of 40,000 requests)'],
    [0, 0, undefined],
  ])('of %i requests, %i failed', (requests, failed, said) => {
    const warning = firstAttemptWarning({ firstAttempts: { requests, failed } });
    expect(warning?.split(',').slice(0, said?.split(',').length).join(',')).toBe(said);
  });
});
