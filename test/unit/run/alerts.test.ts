/** The thresholds for the figures of a run, each at its boundary. */
import { describe, expect, it } from 'vitest';
import { alertsOf } from '../../../src/run/monitor/alerts.js';
import type { AlertContext } from '../../../src/run/monitor/alerts.js';
import type { WrittenRun } from '../../../src/run/monitor/run-record.js';

const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 10, 21, 12);

type Dataset = WrittenRun['summary']['datasets'][number];

interface Figures {
  readonly failed?: number;
  readonly held?: number;
  readonly holes?: number;
  readonly requests?: number;
  readonly retries?: number;
  readonly retried?: readonly [succeeded: number, requests: number];
  readonly refusals?: number;
  readonly elapsedMs?: number;
  readonly mostInFlight?: number;
  readonly most?: number;
  readonly waits?: Readonly<Record<string, number>>;
  readonly dataset?: Partial<Dataset>;
}

function runOf(figures: Figures = {}, rest: Partial<WrittenRun> = {}): WrittenRun {
  const { failed = 0, held = 100, holes = 0, requests = 1000, retries = 0, retried = [0, 0] } = figures;
  const { refusals = 0, elapsedMs = 60_000, mostInFlight = 8, most = 100, waits = {} } = figures;
  const outcomes = { ok: held, partial: 0, skipped: 0, absent: holes, failed };
  const [succeeded, retriedRequests] = retried;
  return {
    verb: 'vision',
    endedAt: new Date(NOW).toISOString(),
    options: { symbols: ['BTCUSDT'] },
    summary: {
      outcomes,
      requests,
      elapsedMs,
      datasets: [
        {
          market: 'um',
          dataset: 'klines',
          outcomes,
          holes,
          days: { held, missing: holes + failed },
          rows: 0,
          bytes: 0,
          newest: '2026-11-18',
          newestEndMs: Date.UTC(2026, 10, 19),
          publicationDelayMs: null,
          unpublished: null,
          unpublishedEndMs: null,
          freshUntilMs: null,
          ...figures.dataset,
        },
      ],
      network: {
        retries: { total: retries, requests: retriedRequests, succeeded },
        limiter: { refusals },
        pool: { most },
        mostInFlight,
        costMs: { waits },
      },
    },
    ...rest,
  } as unknown as WrittenRun;
}

function alerts(run: WrittenRun, context: Partial<AlertContext> = {}) {
  return alertsOf(run, { nowMs: NOW, lakeFlag: '', ...context });
}

function ids(run: WrittenRun, context: Partial<AlertContext> = {}): string[] {
  return alerts(run, context).map(({ id }) => id);
}

describe('a run without trouble', () => {
  it('has no alert, and neither has a run without requests', () => {
    expect(ids(runOf())).toEqual([]);
    expect(ids(runOf({ held: 0, requests: 0, most: 0, mostInFlight: 0 }))).toEqual([]);
  });
});

describe('refusals by a limit', () => {
  it.each([
    [3, []],
    [4, ['limiter-triggers']],
  ])('%d in an hour', (refusals, expected) => {
    expect(ids(runOf({ refusals }))).toEqual(expected);
  });

  it('of a run of several hours are a rate', () => {
    expect(ids(runOf({ refusals: 12, elapsedMs: 4 * HOUR }))).toEqual([]);
    expect(ids(runOf({ refusals: 16, elapsedMs: 4 * HOUR }))).toEqual(['limiter-triggers']);
  });
});

describe('retries', () => {
  it.each([
    [100, 1000, []],
    [101, 1000, ['retry-rate']],
    // Few retries are chance.
    [9, 12, []],
    [10, 12, ['retry-rate']],
  ])('%d of %d requests', (retries, requests, expected) => {
    expect(ids(runOf({ retries, requests }))).toEqual(expected);
  });

  it.each([
    [95, 100, []],
    [94, 100, ['retry-success']],
    [0, 19, []],
    [18, 20, ['retry-success']],
  ])('%d of %d retried requests succeed', (succeeded, requests, expected) => {
    expect(ids(runOf({ retried: [succeeded, requests] }))).toEqual(expected);
  });
});

describe('sockets', () => {
  const waiting = { waits: { socket: 6001 } };

  it.each([
    [{ ...waiting, mostInFlight: 90 }, []],
    [{ ...waiting, mostInFlight: 91 }, ['pool-use']],
    // A full pool that no request waits for is no trouble.
    [{ mostInFlight: 100, waits: { socket: 6000 } }, []],
    [{ mostInFlight: 100, elapsedMs: 5000, waits: { socket: 999 } }, []],
    [{ mostInFlight: 100, elapsedMs: 5000, waits: { socket: 1000 } }, ['pool-use']],
    // One host may use all of its sockets while another uses none.
    [{ mostInFlight: 50, waits: { 'socket-of-host': 6001 } }, ['pool-use']],
  ])('%j', (figures, expected) => {
    expect(ids(runOf(figures))).toEqual(expected);
  });
});

describe('freshness', () => {
  const late = (unpublished: string, endMs: number): Figures => ({
    dataset: { unpublished, unpublishedEndMs: endMs },
  });

  it.each([
    ['2026-11-19', NOW - 48 * HOUR, []],
    ['2026-11-19', NOW - 48 * HOUR - 1, ['not-fresh']],
    ['2026-10', NOW - 240 * HOUR, []],
    ['2026-10', NOW - 240 * HOUR - 1, ['not-fresh']],
    ['2026-11-21', NOW + HOUR, []],
  ])('of %s with the end %d: %j', (unpublished, endMs, expected) => {
    expect(ids(runOf(late(unpublished, endMs)))).toEqual(expected);
  });

  it('names the dataset, its newest period and the late one', () => {
    const [first] = alerts(runOf(late('2026-11-19', NOW - 60 * HOUR)));
    expect(first?.text).toBe(
      'um klines is not fresh: publication has stalled, 2026-11-19 is not published 60 h after its end (usual: 48 h at most); newest held: 2026-11-18',
    );
  });
});

describe('coverage', () => {
  it.each([
    [{ held: 190, holes: 10 }, []],
    [{ held: 189, holes: 10 }, ['low-coverage']],
    [{ held: 100, holes: 5, failed: 5 }, ['low-coverage']],
    // Months have more days than objects.
    [{ held: 12, holes: 165, dataset: { days: { held: 365, missing: 165 } } }, ['low-coverage']],
    [{ held: 12, holes: 12, dataset: { days: { held: 365, missing: 12 } } }, []],
    // Few missing objects are chance.
    [{ held: 1, holes: 9 }, []],
  ])('%j', (figures, expected) => {
    expect(ids(runOf(figures))).toEqual(expected);
  });
});

describe('the text of an alert', () => {
  it('has the figure, the threshold and the next step', () => {
    const bad = runOf({ refusals: 4, retries: 234, retried: [50, 80], failed: 3, holes: 12 });
    const all = alerts(bad, { lakeFlag: ' --out /lake' });
    expect(all.map(({ id, text, advice }) => `${id}: ${text}; ${advice}`)).toMatchInlineSnapshot(`
      [
        "low-coverage: the lake holds 87 % of the days of this run, less than 95 %: 12 holes, 3 failed; cryptodl coverage --out /lake shows each gap; cryptodl repair --out /lake fetches missing data",
        "limiter-triggers: 4 refusals by a limit of the host (429, 418) in an hour, more than 3; lower --concurrency, or give a longer --request-interval",
        "retry-rate: retry rate 23.4 % (234 of 1,000 requests), more than 10 %; cryptodl doctor --out /lake checks the network",
        "retry-success: 62.5 % of retried requests succeeded (50 of 80), less than 95 %; cryptodl doctor --out /lake checks the hosts; more --retries, or a longer --retry-delay, outlast a longer fault",
      ]
    `);
  });
});
