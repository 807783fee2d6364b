/** The figures of the runs of this process in the text format of Prometheus. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { hostOf, type AttemptEnd } from '../../model/fetch.js';
import type { ProxyFigures } from '../../http/proxies/proxy-lane.js';
import type { BreakerState } from '../../http/retry/host-breaker.js';
import type { Clock } from '../../model/clock.js';
import { grouped } from '../../model/by-name.js';
import { Counters } from '../../model/counters.js';
import { TOOL_VERSION } from '../../model/version.js';
import type { DatasetFigures } from '../report/tally.js';
import type { NetworkFigures } from '../report/network-figures.js';
import { LATENCY_BOUNDS_S } from '../report/figures.js';
import type { LiveRun } from '../report/live-run.js';
import { METRICS, type Labels, type MetricName } from './prometheus-metrics.js';
import type { RunHistory } from './run-history.js';

const BREAKER: Readonly<Record<BreakerState, number>> = { closed: 0, 'half-open': 1, open: 2, stopped: 3 };

interface FollowedRun {
  /** The name of the job, else the verb. */
  readonly job: string;
  readonly history: RunHistory;
  readonly live: LiveRun;
}

type CountName = Exclude<MetricName, 'cryptodl_request_duration_seconds'>;

/** One registry for all runs of a command. Only latencies and bytes are counted as they occur; all else is read for each page. */
export class PrometheusFigures {
  readonly #registry = new Registry();
  readonly #metrics = new Map<CountName, Counter | Gauge>();
  readonly #latency!: Histogram;
  readonly #runs: FollowedRun[] = [];

  /** `startedAtMs`: start of the command on the monotonic clock. */
  constructor(
    private readonly clock: Clock,
    private readonly startedAtMs: number,
  ) {
    const registers = [this.#registry];
    for (const [name, { type, help, labels }] of Object.entries(METRICS)) {
      const settings = { name, help, labelNames: [...labels], registers };
      if (type === 'counter') this.#metrics.set(name as CountName, new Counter(settings));
      else if (type === 'gauge') this.#metrics.set(name as CountName, new Gauge(settings));
      else this.#latency = new Histogram({ ...settings, buckets: [...LATENCY_BOUNDS_S] });
    }
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** `job`: the name of the job, else the verb. */
  follow(job: string, history: RunHistory, live: LiveRun): void {
    this.#runs.push({ job, history, live });
    live.follow({ attempt: this.#onAttempt });
  }

  /** The page of all metrics at this moment. `labels` are added to each of them. */
  async text(labels: Labels = {}): Promise<string> {
    this.#registry.setDefaultLabels(labels);
    for (const metric of this.#metrics.values()) metric.reset();
    this.#addProcess();
    for (const run of this.#runs) this.#addRun(run);
    const runs = this.#runs.map(({ live }) => live);
    const current = runs.filter(({ network, end }) => network !== undefined && end === undefined);
    // The levels of ended runs are over; without a run in progress, the page shows those of the last one.
    if (current.length === 0) current.push(...runs.slice(-1));
    for (const live of current) this.#addLevels(live);
    const figures = runs.flatMap(({ network }) => network?.() ?? []);
    this.#setProxies(current.flatMap(({ network }) => network?.().proxies ?? []));
    this.#setLoopDelay(figures.map(({ loopDelayMs }) => loopDelayMs));
    this.#addHosts(figures.flatMap(({ hosts }) => Object.entries(hosts)));
    this.#addDatasets();
    return this.#registry.metrics();
  }

  readonly #onAttempt = ({ request, sentAtMs, endedAtMs, error }: AttemptEnd): void => {
    if (error !== undefined) return;
    this.#latency.observe({ host: hostOf(request.url) }, (endedAtMs - sentAtMs) / 1000);
  };

  #addProcess(): void {
    const { heapUsed, rss } = process.memoryUsage();
    this.#add('cryptodl_build_info', 1, { version: TOOL_VERSION });
    this.#add('cryptodl_elapsed_seconds', (this.clock.monotonic() - this.startedAtMs) / 1000);
    this.#add('cryptodl_heap_used_bytes', heapUsed);
    this.#add('cryptodl_resident_memory_bytes', rss);
  }

  #addRun(run: FollowedRun): void {
    const { objects, counts, progress, network: networkNow } = run.live;
    this.#add('cryptodl_queue_objects', objects.undone);
    this.#add('cryptodl_received_bytes_total', counts.of('bytes'));
    this.#addEach('cryptodl_object_failures_total', 'code', progress?.tally.failedBy ?? {});
    this.#setEnd(run);
    const network = networkNow?.();
    if (network === undefined) return;
    const { retries, limiter, proxies } = network;
    this.#addEach('cryptodl_request_errors_total', 'code', network.errors);
    this.#addEach('cryptodl_retries_total', 'reason', retries.reasons);
    this.#add('cryptodl_retried_requests_total', retries.requests);
    this.#add('cryptodl_retried_requests_succeeded_total', retries.succeeded);
    this.#addLake(network.lake);
    for (const [bucket, { waits, waitedMs, refusals }] of Object.entries(limiter.buckets)) {
      this.#add('cryptodl_limiter_waits_total', waits, { bucket });
      this.#add('cryptodl_limiter_wait_seconds_total', waitedMs / 1000, { bucket });
      this.#add('cryptodl_limiter_refusals_total', refusals, { bucket });
    }
    for (const { proxy, requests, failures, refusals } of proxies) {
      this.#add('cryptodl_proxy_requests_total', requests, { proxy });
      this.#add('cryptodl_proxy_failures_total', failures, { proxy });
      this.#add('cryptodl_proxy_refusals_total', refusals, { proxy });
    }
  }

  /** The end of this or the last run. */
  #setEnd({ job, history, live: { end, progress } }: FollowedRun): void {
    const { lastSuccessMs, failedInARow } = history;
    const successMs = end?.exitCode === 0 ? end.atMs : lastSuccessMs;
    // A run that began no downloads changes nothing.
    const failed = end && progress?.tally.of('outcome.failed');
    const inARow = failed === 0 ? 0 : failedInARow + (failed === undefined ? 0 : 1);
    const labels = { run_job: job };
    this.#set('cryptodl_check_exit_code', end?.verdict?.exitCode, labels);
    this.#set('cryptodl_check_lacking_series', end?.verdict?.lacking, labels);
    this.#set('cryptodl_failed_runs_in_a_row', inARow, labels);
    this.#set('cryptodl_last_success_timestamp_seconds', successMs && successMs / 1000, labels);
    this.#set('cryptodl_last_run_timestamp_seconds', end && end.atMs / 1000, labels);
    this.#set('cryptodl_last_run_exit_code', end?.exitCode, labels);
  }

  #addLake(lake: NetworkFigures['lake']): void {
    if (lake === undefined) return;
    const { host, requests, retries, sentBytes, receivedBytes } = lake;
    this.#addEach('cryptodl_lake_requests_total', 'method', requests, { host });
    this.#addEach('cryptodl_lake_retries_total', 'reason', retries);
    this.#add('cryptodl_lake_sent_bytes_total', sentBytes);
    this.#add('cryptodl_lake_received_bytes_total', receivedBytes);
  }

  #addLevels(live: LiveRun): void {
    const { inFlight = 0, writing = 0, toWrite = 0 } = live.progress?.state() ?? {};
    this.#add('cryptodl_objects_in_flight', inFlight);
    this.#add('cryptodl_files_writing', writing);
    this.#add('cryptodl_files_waiting', toWrite);
    const network = live.network?.();
    if (network === undefined) return;
    const { pool } = network;
    this.#add('cryptodl_requests_in_flight', network.inFlight);
    this.#add('cryptodl_concurrency_limit', network.concurrency);
    this.#add('cryptodl_pool_sockets', pool.sockets);
    this.#add('cryptodl_pool_sockets_busy', pool.busy);
    this.#add('cryptodl_pool_sockets_limit', pool.most);
    this.#add('cryptodl_pool_requests_queued', pool.queued);
    const { group } = network.limiter;
    if (group === undefined) return;
    this.#set('cryptodl_egress_group_members', group.members, { group: group.name });
    this.#set('cryptodl_egress_group_shared', group.isShared ? 1 : 0, { group: group.name });
  }

  /** Each run has its own view of a proxy: the page shows the worst one. */
  #setProxies(proxies: readonly ProxyFigures[]): void {
    for (const [proxy, same] of grouped(proxies, (one) => one.proxy)) {
      this.#set('cryptodl_proxy_up', same.some(({ isDead }) => isDead) ? 0 : 1, { proxy });
      const pausedMs = Math.max(...same.map((one) => one.pausedMs));
      this.#set('cryptodl_proxy_paused_seconds', pausedMs / 1000, { proxy });
    }
  }

  #setLoopDelay(delays: readonly NetworkFigures['loopDelayMs'][]): void {
    const most = (name: 'p50' | 'p99' | 'most'): number =>
      Math.max(0, ...delays.map((delay) => delay[name])) / 1000;
    this.#set('cryptodl_event_loop_delay_p50_seconds', most('p50'));
    this.#set('cryptodl_event_loop_delay_p99_seconds', most('p99'));
    this.#set('cryptodl_event_loop_delay_max_seconds', most('most'));
  }

  #addHosts(hosts: readonly (readonly [string, NetworkFigures['hosts'][string]])[]): void {
    for (const [host, same] of grouped(hosts, ([name]) => name)) {
      for (const [, { statuses }] of same)
        this.#addEach('cryptodl_requests_total', 'status', statuses, { host });
      // Each run has its own breakers: the page shows the worst one.
      const states = same.map(([, { breaker }]) => BREAKER[breaker]);
      this.#set('cryptodl_breaker_state', Math.max(...states), { host });
    }
  }

  #addDatasets(): void {
    const own = this.#runs.flatMap(({ live }) => live.progress?.tally.datasets ?? []);
    for (const { market, dataset, outcomes, rows, bytes } of own) {
      this.#addEach('cryptodl_objects_total', 'outcome', outcomes, { market, dataset });
      this.#add('cryptodl_rows_total', rows, { market, dataset });
      this.#add('cryptodl_bytes_total', bytes, { market, dataset });
    }
    // Records of earlier runs count for datasets that this process has no figures of.
    const all = [...this.#runs.flatMap(({ history }) => history.datasets), ...own];
    for (const same of grouped(all, nameOf).values()) {
      const ofProcess = same.filter((figures) => own.includes(figures));
      this.#setLevelsOf(same, ofProcess.length > 0 ? ofProcess : same.slice(-1));
    }
  }

  /** `all`: the figures of one dataset, oldest first. `current`: those whose objects count. */
  #setLevelsOf(all: readonly DatasetFigures[], current: readonly DatasetFigures[]): void {
    const { market = '', dataset = '' } = all[0] ?? {};
    const labels = { market, dataset };
    const sums = new Counters(
      ...current.map(({ days, holes, outcomes: { failed } }) => ({ ...days, objects: failed + holes })),
    );
    const held = sums.of('held');
    const expected = held + sums.of('missing');
    if (expected > 0) {
      this.#set('cryptodl_coverage_ratio', held / expected, labels);
      this.#set('cryptodl_missing_objects', sums.of('objects'), labels);
    }
    const secondsOf = (name: 'newestEndMs' | 'freshUntilMs' | 'publicationDelayMs'): number[] =>
      all.flatMap((figures) => figures[name] ?? []).map((ms) => ms / 1000);
    const [newest] = secondsOf('newestEndMs').toSorted((one, other) => other - one);
    const [freshUntil] = secondsOf('freshUntilMs').toSorted((one, other) => other - one);
    this.#set('cryptodl_newest_period_end_timestamp_seconds', newest, labels);
    this.#set('cryptodl_fresh_until_timestamp_seconds', freshUntil, labels);
    this.#set('cryptodl_publication_delay_seconds', secondsOf('publicationDelayMs').at(-1), labels);
  }

  #addEach(name: CountName, label: string, counts: Readonly<Record<string, number>>, labels?: Labels): void {
    for (const [value, count] of Object.entries(counts))
      this.#add(name, count, { ...labels, [label]: value });
  }

  #add(name: CountName, value: number, labels: Labels = {}): void {
    this.#metrics.get(name)?.inc(labels, value);
  }

  /** Nothing for a value that is not known. */
  #set(name: CountName, value: number | undefined, labels: Labels = {}): void {
    const metric = this.#metrics.get(name);
    if (metric instanceof Gauge && value !== undefined) metric.set(labels, value);
  }
}

const nameOf = ({ market, dataset }: DatasetFigures): string => `${market} ${dataset}`;
