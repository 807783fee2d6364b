/** Each metric of the page: its type, its unit and its value, from figures of two runs that all differ. */
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { dayPeriod, parseDay } from '../../../src/model/calendar.js';
import type { Outcome } from '../../../src/model/outcome.js';
import type { PlanTotals, Series } from '../../../src/model/task.js';
import { TOOL_VERSION } from '../../../src/model/version.js';
import { METRICS } from '../../../src/run/monitor/prometheus-metrics.js';
import { PrometheusFigures } from '../../../src/run/monitor/prometheus.js';
import { NO_HISTORY } from '../../../src/run/monitor/run-history.js';
import type { NetworkFigures } from '../../../src/run/report/network-figures.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { Tally } from '../../../src/run/report/tally.js';
import { samplesOf } from '../../helpers/prometheus.js';
import { REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const KLINES: Series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const HOST = new URL(REQUEST.url).host;

/** Figures in which each number is another one, times `by`. */
function networkOf(by: number, breaker: 'closed' | 'open'): () => NetworkFigures {
  const percentiles = { p50: 1, p95: 2, p99: 3 };
  const figures: Omit<NetworkFigures, 'dns' | 'firstAttempts'> = {
    requests: 100 * by,
    inFlight: 4 * by,
    mostInFlight: 50,
    retries: {
      ...percentiles,
      total: 12 * by,
      requests: 9 * by,
      succeeded: 8 * by,
      reasons: { 'connection-lost': 12 * by },
    },
    firstByteMs: percentiles,
    attemptMs: percentiles,
    errors: { 'http-server-error': 13 * by },
    hosts: { 'a:443': { statuses: { 200: 21 * by, none: 2 * by }, attemptMs: percentiles, breaker } },
    concurrency: 30 * by,
    settled: undefined,
    retreats: 0,
    limiter: {
      waits: 0,
      waitedMs: 0,
      refusals: 0,
      refusalsPerHour: 0,
      group: { name: 'office', members: 5 + by, isShared: by === 1 },
      buckets: { archive: { waits: 5 * by, waitedMs: 1500 * by, refusals: 6 * by, isChosen: false } },
    },
    proxies: [
      { proxy: 'p:1', requests: 70 * by, failures: 3 * by, refusals: 2 * by, isDead: by === 1, pausedMs: 0 },
      { proxy: 'p:2', requests: 71 * by, failures: 0, refusals: 0, isDead: false, pausedMs: 500 * by },
    ],
    lake: {
      host: 's3:9000',
      requests: { GET: 24 * by, PUT: 25 * by },
      retries: { 'rate-limited': 14 * by },
      sentBytes: 2600 * by,
      receivedBytes: 2700 * by,
      statuses: { 200: 28 * by },
      errors: {},
    },
    pool: { sockets: 17 * by, busy: 11 * by, queued: 7 * by, most: 40 * by },
    costMs: { waits: {}, failures: {} },
    loopDelayMs: { p50: 2 * by, p99: 60 * by, most: 250 * by, busyShare: 0.5 },
  };
  return () => figures as NetworkFigures;
}

function tallyOf(outcomes: readonly Outcome[]): Tally {
  const tally = new Tally({ dayStartMs: 0 });
  for (const [at, outcome] of outcomes.entries()) {
    const day = parseDay(`2026-11-${20 - at}`) ?? Number.NaN;
    const object = { key: 'k', period: dayPeriod(day), lastModified: '2026-11-21T06:00:00Z' };
    tally.count(KLINES, object, outcome);
  }
  return tally;
}

const ok: Outcome = { kind: 'ok', rows: 1440, bytes: 60_000, unverified: false };
const failed: Outcome = { kind: 'failed', error: new CryptodlError('http-forbidden', 'x') };

function begin(live: LiveRun, network: () => NetworkFigures, by: number, outcomes: readonly Outcome[]): void {
  live.network = network;
  live.progress = {
    totals: { fetch: 5, skip: 2, absent: 1 } as PlanTotals,
    tally: tallyOf(outcomes),
    state: () => ({ inFlight: 3 * by, writing: by, toWrite: 2 * by }),
  };
}

async function pageOfTwoRuns() {
  const clock = new VirtualClock();
  const figures = new PrometheusFigures(clock, clock.monotonic());
  const follow = (job: string, by: number, outcomes: readonly Outcome[]) => {
    const live = new LiveRun(clock);
    begin(live, networkOf(by, by === 1 ? 'closed' : 'open'), by, outcomes);
    live.observer.arrived(1000 * by);
    figures.follow(job, NO_HISTORY, live);
    return live;
  };
  const first = follow('bars', 1, [ok, ok, { kind: 'absent', reason: 'hole' }]);
  const second = follow('trades', 10, [failed]);
  const attempt = (ms: number, error?: CryptodlError): void => {
    first.observer.attempt({
      request: REQUEST,
      attemptId: 'a/1',
      begunAtMs: 0,
      sentAtMs: 100,
      endedAtMs: 100 + ms,
      firstByteMs: ms,
      status: 200,
      error,
    });
  };
  for (const ms of [20, 300, 700, 1500, 4000, 9000, 30_000]) attempt(ms);
  attempt(50, new CryptodlError('connection-lost', 'x'));
  await clock.advance(90_000);
  const both = await figures.text();
  const nowS = clock.now() / 1000;
  first.ended(0);
  const one = await figures.text();
  second.ended(4, { exitCode: 3, lacking: 5 });
  return { both, one, none: await figures.text(), nowS };
}

/** `name{label=value,…}` → value */
function valuesOf(page: string): Record<string, number> {
  return Object.fromEntries(
    samplesOf(page).map(({ name, labels, value }) => {
      const pairs = Object.entries(labels).map(([key, text]) => `${key}=${text}`);
      return [`${name.replace('cryptodl_', '')}{${pairs.toSorted().join()}}`, value];
    }),
  );
}

/** Metrics with the memory of this process. */
const OF_PROCESS = ['heap_used_bytes{}', 'resident_memory_bytes{}'];

const BOTH: Readonly<Record<string, number>> = {
  [`build_info{version=${TOOL_VERSION}}`]: 1,
  'requests_total{host=a:443,status=200}': 231,
  'requests_total{host=a:443,status=none}': 22,
  [`request_duration_seconds_bucket{host=${HOST},le=0.005}`]: 0,
  [`request_duration_seconds_bucket{host=${HOST},le=0.01}`]: 0,
  [`request_duration_seconds_bucket{host=${HOST},le=0.025}`]: 1,
  [`request_duration_seconds_bucket{host=${HOST},le=0.05}`]: 1,
  [`request_duration_seconds_bucket{host=${HOST},le=0.1}`]: 1,
  [`request_duration_seconds_bucket{host=${HOST},le=0.25}`]: 1,
  [`request_duration_seconds_bucket{host=${HOST},le=0.5}`]: 2,
  [`request_duration_seconds_bucket{host=${HOST},le=1}`]: 3,
  [`request_duration_seconds_bucket{host=${HOST},le=2}`]: 4,
  [`request_duration_seconds_bucket{host=${HOST},le=5}`]: 5,
  [`request_duration_seconds_bucket{host=${HOST},le=10}`]: 6,
  [`request_duration_seconds_bucket{host=${HOST},le=+Inf}`]: 7,
  [`request_duration_seconds_sum{host=${HOST}}`]: expect.closeTo(45.52) as number,
  [`request_duration_seconds_count{host=${HOST}}`]: 7,
  'request_errors_total{code=http-server-error}': 143,
  'requests_in_flight{}': 44,
  'retries_total{reason=connection-lost}': 132,
  'retried_requests_total{}': 99,
  'retried_requests_succeeded_total{}': 88,
  // The worst breaker of a host.
  'breaker_state{host=a:443}': 2,
  // Of the last run of the two.
  'egress_group_members{group=office}': 15,
  'egress_group_shared{group=office}': 0,
  'proxy_requests_total{proxy=p:1}': 770,
  'proxy_failures_total{proxy=p:1}': 33,
  'proxy_refusals_total{proxy=p:1}': 22,
  'proxy_up{proxy=p:1}': 0,
  'proxy_paused_seconds{proxy=p:1}': 0,
  'proxy_requests_total{proxy=p:2}': 781,
  'proxy_failures_total{proxy=p:2}': 0,
  'proxy_refusals_total{proxy=p:2}': 0,
  'proxy_up{proxy=p:2}': 1,
  'proxy_paused_seconds{proxy=p:2}': 5,
  'lake_requests_total{host=s3:9000,method=GET}': 264,
  'lake_requests_total{host=s3:9000,method=PUT}': 275,
  'lake_retries_total{reason=rate-limited}': 154,
  'lake_sent_bytes_total{}': 28_600,
  'lake_received_bytes_total{}': 29_700,
  'limiter_waits_total{bucket=archive}': 55,
  'limiter_wait_seconds_total{bucket=archive}': 16.5,
  'limiter_refusals_total{bucket=archive}': 66,
  // Sixteen planned, four with an outcome.
  'queue_objects{}': 12,
  'objects_in_flight{}': 33,
  'concurrency_limit{}': 330,
  'files_writing{}': 11,
  'files_waiting{}': 22,
  'pool_sockets{}': 187,
  'pool_sockets_busy{}': 121,
  'pool_sockets_limit{}': 440,
  'pool_requests_queued{}': 77,
  'objects_total{dataset=klines,market=um,outcome=ok}': 2,
  'objects_total{dataset=klines,market=um,outcome=partial}': 0,
  'objects_total{dataset=klines,market=um,outcome=skipped}': 0,
  'objects_total{dataset=klines,market=um,outcome=absent}': 1,
  'objects_total{dataset=klines,market=um,outcome=failed}': 1,
  'object_failures_total{code=http-forbidden}': 1,
  'rows_total{dataset=klines,market=um}': 2880,
  'bytes_total{dataset=klines,market=um}': 120_000,
  'received_bytes_total{}': 11_000,
  'coverage_ratio{dataset=klines,market=um}': 0.5,
  'missing_objects{dataset=klines,market=um}': 2,
  'newest_period_end_timestamp_seconds{dataset=klines,market=um}': Date.UTC(2026, 10, 21) / 1000,
  'fresh_until_timestamp_seconds{dataset=klines,market=um}': Date.UTC(2026, 10, 24) / 1000,
  'publication_delay_seconds{dataset=klines,market=um}': 6 * 3600,
  'failed_runs_in_a_row{run_job=bars}': 0,
  'failed_runs_in_a_row{run_job=trades}': 0,
  'elapsed_seconds{}': 90,
  'event_loop_delay_p50_seconds{}': 0.02,
  'event_loop_delay_p99_seconds{}': 0.6,
  'event_loop_delay_max_seconds{}': 2.5,
};

describe('the page of metrics', () => {
  it('has each figure of two runs, in seconds and bytes', async () => {
    const values = valuesOf((await pageOfTwoRuns()).both);
    for (const name of OF_PROCESS) {
      expect(values[name]).toBeGreaterThan(1e6);
      delete values[name];
    }
    expect(values).toEqual(BOTH);
  });

  it('shows levels only of runs in progress, and results of ended runs', async () => {
    const { both, one, none, nowS } = await pageOfTwoRuns();
    const [before, then, end] = [both, one, none].map(valuesOf);
    const levels = [
      'requests_in_flight{}',
      'objects_in_flight{}',
      'concurrency_limit{}',
      'files_writing{}',
      'files_waiting{}',
      'pool_sockets{}',
      'pool_sockets_busy{}',
      'pool_sockets_limit{}',
      'pool_requests_queued{}',
    ];
    expect(levels.map((name) => then?.[name])).toEqual([40, 30, 300, 10, 20, 170, 110, 400, 70]);
    const counts = Object.keys(before ?? {}).filter((name) => /_(total|count|sum)\{/.test(name));
    expect(counts.length).toBeGreaterThan(15);
    expect(counts.map((name) => [name, end?.[name]])).toEqual(counts.map((name) => [name, before?.[name]]));
    expect(Object.entries(end ?? {}).filter(([name]) => /^(last|failed|check)_/.test(name))).toEqual([
      ['check_exit_code{run_job=trades}', 3],
      ['check_lacking_series{run_job=trades}', 5],
      ['last_run_timestamp_seconds{run_job=bars}', nowS],
      ['last_run_timestamp_seconds{run_job=trades}', nowS],
      ['last_run_exit_code{run_job=bars}', 0],
      ['last_run_exit_code{run_job=trades}', 4],
      ['last_success_timestamp_seconds{run_job=bars}', nowS],
      ['failed_runs_in_a_row{run_job=bars}', 0],
      ['failed_runs_in_a_row{run_job=trades}', 1],
    ]);
  });

  it('has the type of each metric, and no metric that this file does not know', async () => {
    const page = (await pageOfTwoRuns()).none;
    const types = [...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type]) => [name, type]);
    // By the convention of Prometheus, only counters end in _total.
    const typeOf = (name: string): string => (name.endsWith('_total') ? 'counter' : 'gauge');
    expect(Object.fromEntries(types)).toEqual({
      ...Object.fromEntries(Object.keys(METRICS).map((name) => [name, typeOf(name)])),
      cryptodl_request_duration_seconds: 'histogram',
    });
    const known = Object.keys({ ...BOTH, ...valuesOf(page) }).map((name) =>
      name.replace(/(_bucket|_sum|_count)?\{.*/, ''),
    );
    expect(new Set(known)).toEqual(
      new Set(Object.keys(METRICS).map((name) => name.replace('cryptodl_', ''))),
    );
  });
});
