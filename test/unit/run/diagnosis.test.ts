import { describe, expect, it } from 'vitest';
import { FLAG_NAMES } from '../../../src/plan/options/flags.js';
import { diagnosisLines, firstAttemptWarning } from '../../../src/run/report/diagnosis.js';
import type { NetworkFigures } from '../../../src/run/report/network-figures.js';

const NONE = { p50: 0, p95: 0, p99: 0 };
const QUIET = {
  retries: { total: 0, requests: 0, succeeded: 0, reasons: {}, ...NONE },
  firstAttempts: { requests: 100, failed: 0 },
  costMs: { waits: {}, failures: {} },
  limiter: { waits: 0, waitedMs: 0, refusals: 0, refusalsPerHour: 0, buckets: {} },
  proxies: [],
  dns: { lookups: 3, hits: 0, misses: 1, failures: 0, ms: 5 },
  loopDelayMs: { p50: 0, p99: 20, most: 100, busyShare: 0.5 },
} as unknown as NetworkFigures;

/** Of a run of 100 s. */
function lines(network: Partial<NetworkFigures>, elapsedMs = 100_000): string[] {
  return diagnosisLines({ network: { ...QUIET, ...network }, elapsedMs });
}

const waits = (costs: NetworkFigures['costMs']['waits']): Partial<NetworkFigures> => ({
  costMs: { waits: costs, failures: {} },
});
const failures = (costs: NetworkFigures['costMs']['failures']): Partial<NetworkFigures> => ({
  costMs: { waits: {}, failures: costs },
});
const bucket = (isChosen: boolean, waitedMs = 1) => ({ waits: 1, refusals: 0, waitedMs, isChosen });

describe('the diagnosis of a run', () => {
  it('of a run that nothing held up is empty', () => {
    expect(lines({})).toEqual([]);
  });

  it('tells of nothing that costs less than a second', () => {
    expect(lines(waits({ permit: 999 }), 1000)).toEqual([]);
    expect(lines(waits({ permit: 1000 }), 1000)).not.toEqual([]);
  });

  it('counts refusals, also those that cost nothing', () => {
    const limiter = { waits: 0, waitedMs: 0, refusals: 1, refusalsPerHour: 36, buckets: {} };
    expect(lines({ limiter })).toEqual([
      '  refused    1 time by a limit of the host (429, 418), 36 per hour',
    ]);
  });
});

describe('the bottleneck', () => {
  /** What stands in its line, if there is one. */
  const bottleneck = (network: Partial<NetworkFigures>): string | undefined =>
    lines(network)
      .find((line) => line.startsWith('  bottleneck '))
      ?.slice('  bottleneck '.length);

  it('is named from a tenth of the run on, and only the largest', () => {
    expect(bottleneck(waits({ socket: 10_000 }))).toBeUndefined();
    expect(bottleneck(waits({ socket: 10_001 }))).toBe(
      '--pool-limit, 10 % of the run: a higher limit allows more requests at once',
    );
    expect(bottleneck(waits({ socket: 30_000, breaker: 31_000 }))).toBe(
      '--breaker-open, 31 % of the run: a shorter time tries a failed host again sooner',
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
    const limiter = { waits: 2, waitedMs: 0, refusals: 0, refusalsPerHour: 0, buckets };
    expect(bottleneck({ ...waits({ permit: 50_000 }), limiter })).toBe(text);
  });

  it.each(['connect-timeout', 'headers-timeout', 'idle-timeout', 'total-timeout'] as const)(
    'is --%s',
    (flag) => {
      expect(bottleneck(failures({ [flag]: 50_000 }))).toBe(
        `--${flag}, 50 % of the run: a shorter timeout ends hanging requests sooner, a longer one waits for a slow host`,
      );
    },
  );

  it('names only flags that there are', () => {
    const all = [
      waits({ pause: 50_000 }),
      waits({ 'back-off': 50_000 }),
      waits({ 'retry-after': 50_000 }),
      waits({ 'socket-of-host': 50_000 }),
      waits({ 'retry-budget': 50_000 }),
    ];
    const named = all.flatMap((network) => bottleneck(network)?.match(/--[a-z-]+/g) ?? []);
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
