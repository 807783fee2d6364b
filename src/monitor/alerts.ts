/** Thresholds for the figures of a run, and the alerts of a run beyond them. */
import { LATE_MS } from '../model/absence-reasons.js';
import { countText, durationText, numberText } from '../model/units.js';
import type { Alert } from '../report/run-summary.js';
import { isSame } from './run-history.js';
import type { SelectedRun } from './run-history.js';
import type { RunRecord } from './run-record.js';

type Network = RunRecord['summary']['network'];

/** The part of a record that the thresholds need. */
export interface JudgedRun extends SelectedRun {
  readonly endedAt: string;
  readonly summary: {
    readonly outcomes: Readonly<RunRecord['summary']['outcomes']>;
    readonly requests: number;
    readonly elapsedMs: number;
    readonly datasets: readonly Readonly<RunRecord['summary']['datasets'][number]>[];
    readonly network: {
      readonly retries: Pick<Network['retries'], 'total' | 'requests' | 'succeeded'>;
      readonly limiter: Pick<Network['limiter'], 'refusals'>;
      readonly pool: Pick<Network['pool'], 'most'>;
      readonly mostInFlight: number;
      readonly costMs: { readonly waits: Readonly<Record<string, number>> };
    };
  };
}

export interface AlertContext {
  /** Earlier runs of the lake, oldest first. */
  readonly earlier: readonly JudgedRun[];
  /** The time of the run, which `--now` may set. */
  readonly nowMs: number;
  /** ` --out DIR` for the commands of an advice; empty for the lake that commands use without the flag. */
  readonly lakeFlag: string;
}

const HOUR_MS = 3_600_000;

/** The rules of `config/monitoring/alerts.yml` have the same ones. */
export const THRESHOLDS = {
  /** Refusals (429, 418) in an hour. */
  limiterTriggers: 3,
  retryRate: 0.1,
  retrySuccess: 0.95,
  poolUse: 0.9,
  coverage: 0.95,
} as const;

/** Fewer events are chance: a rate of them is no alert. */
export const LEAST = { retries: 10, retriedRequests: 20, missingObjects: 10 } as const;

/** A full pool counts only if requests waited this long for a socket, and for this share of the run. */
const POOL_WAIT_MS = 1000;
const POOL_WAIT_SHARE = 0.1;

/** The alerts of a run, most urgent first. */
export function alertsOf(run: JudgedRun, context: AlertContext): Alert[] {
  return [
    failedAgain(run, context),
    ...notFresh(run, context),
    lowCoverage(run, context),
    limiterTriggers(run, context),
    retryRate(run, context),
    retrySuccess(run, context),
    poolUse(run),
  ].filter((alert) => alert !== undefined);
}

/** Whether the alerts of a run depend on earlier runs. Reading these takes time. */
export function needsEarlier({ summary: { outcomes, network } }: JudgedRun): boolean {
  return outcomes.failed > 0 || network.limiter.refusals > 0;
}

function failedAgain(run: JudgedRun, { earlier, lakeFlag }: AlertContext): Alert | undefined {
  const before = earlier.findLast((other) => isSame(other, run));
  const [failed, failedBefore] = [run, before].map((one) => one?.summary.outcomes.failed ?? 0);
  if (failed === undefined || failed === 0 || failedBefore === undefined || failedBefore === 0)
    return undefined;
  return {
    id: 'failed-again',
    text: `failed objects in two runs in a row: ${numberText(failed)} now, ${numberText(failedBefore)} before`,
    advice: `cryptodl doctor${lakeFlag} checks the hosts and the lake; cryptodl report${lakeFlag} shows the failed objects`,
  };
}

/** By dataset, so that a delisted symbol is no reason: the others of its dataset are newer. */
function notFresh({ summary }: JudgedRun, { nowMs, lakeFlag }: AlertContext): Alert[] {
  return summary.datasets.flatMap(({ market, dataset, newest, unpublished, unpublishedEndMs }) => {
    if (unpublished === null || unpublishedEndMs === null) return [];
    const limitMs = LATE_MS[unpublished.length === 'YYYY-MM'.length ? 'monthly' : 'daily'];
    const ageMs = nowMs - unpublishedEndMs;
    if (ageMs <= limitMs) return [];
    return [
      {
        id: 'not-fresh',
        text: `${market} ${dataset} is not fresh: publication has stalled, ${unpublished} is not published ${hoursText(ageMs)} after its end (usual: ${hoursText(limitMs)} at most); newest held: ${newest ?? 'none'}`,
        advice: `cryptodl doctor${lakeFlag} checks the archive; --fill rest takes the newest days from REST`,
      },
    ];
  });
}

/** The share counts days, because an object has one or a month of them. */
function lowCoverage(
  { summary: { outcomes, datasets } }: JudgedRun,
  { lakeFlag }: AlertContext,
): Alert | undefined {
  const sums = { holes: 0, held: 0, missing: 0 };
  for (const { holes, days } of datasets) {
    sums.holes += holes;
    sums.held += days.held;
    sums.missing += days.missing;
  }
  const { holes, held, missing } = sums;
  const coverage = held / (held + missing);
  if (holes + outcomes.failed < LEAST.missingObjects || coverage >= THRESHOLDS.coverage) return undefined;
  return {
    id: 'low-coverage',
    text: `the lake holds ${percentText(coverage)} of the days of this run, less than ${percentText(THRESHOLDS.coverage)}: ${countText(holes, 'hole')}, ${numberText(outcomes.failed)} failed`,
    advice: `cryptodl coverage${lakeFlag} shows each gap; cryptodl repair${lakeFlag} fetches missing data`,
  };
}

function limiterTriggers(run: JudgedRun, { earlier }: AlertContext): Alert | undefined {
  const { network, elapsedMs } = run.summary;
  const endMs = Date.parse(run.endedAt);
  // Runs of a few minutes count together: each of them alone has no rate per hour.
  const recent = earlier.filter(({ endedAt }) => endMs - Date.parse(endedAt) < HOUR_MS);
  const before = recent.reduce((sum, { summary }) => sum + summary.network.limiter.refusals, 0);
  const own = network.limiter.refusals;
  const perHour = elapsedMs > HOUR_MS ? Math.round((own / elapsedMs) * HOUR_MS) : own + before;
  if (own === 0 || perHour <= THRESHOLDS.limiterTriggers) return undefined;
  return {
    id: 'limiter-triggers',
    text: `${numberText(perHour)} refusals by a limit of the host (429, 418) in an hour, more than ${THRESHOLDS.limiterTriggers}`,
    advice: 'lower --concurrency, or give a longer --request-interval',
  };
}

function retryRate(
  { summary: { network, requests } }: JudgedRun,
  { lakeFlag }: AlertContext,
): Alert | undefined {
  const { total } = network.retries;
  const rate = total / requests;
  if (total < LEAST.retries || !(rate > THRESHOLDS.retryRate)) return undefined;
  return {
    id: 'retry-rate',
    text: `retry rate ${percentText(rate)} (${numberText(total)} of ${numberText(requests)} requests), more than ${percentText(THRESHOLDS.retryRate)}`,
    advice: `cryptodl doctor${lakeFlag} checks the network`,
  };
}

function retrySuccess({ summary: { network } }: JudgedRun, { lakeFlag }: AlertContext): Alert | undefined {
  const { requests, succeeded } = network.retries;
  const share = succeeded / requests;
  if (requests < LEAST.retriedRequests || share >= THRESHOLDS.retrySuccess) return undefined;
  return {
    id: 'retry-success',
    text: `${percentText(share)} of retried requests succeeded (${numberText(succeeded)} of ${numberText(requests)}), less than ${percentText(THRESHOLDS.retrySuccess)}`,
    advice: `cryptodl doctor${lakeFlag} checks the hosts; more --retries, or a longer --retry-delay, outlast a longer fault`,
  };
}

function poolUse({ summary: { network, elapsedMs } }: JudgedRun): Alert | undefined {
  const { pool, mostInFlight, costMs } = network;
  const { socket = 0, 'socket-of-host': socketOfHost = 0 } = costMs.waits;
  const waitedMs = socket + socketOfHost;
  // Requests wait for a socket of a host only while all sockets of the host are in use.
  const use = socketOfHost > socket ? 1 : mostInFlight / pool.most;
  if (waitedMs < POOL_WAIT_MS || waitedMs <= elapsedMs * POOL_WAIT_SHARE) return undefined;
  if (!(use > THRESHOLDS.poolUse)) return undefined;
  return {
    id: 'pool-use',
    text: `${percentText(use)} of the sockets in use, more than ${percentText(THRESHOLDS.poolUse)}, and requests waited ${durationText(waitedMs)} of ${durationText(elapsedMs)} for one`,
    advice: 'a higher --pool-limit or --pool-limit-per-host, or a lower --concurrency',
  };
}

function hoursText(ms: number): string {
  return `${Math.round(ms / HOUR_MS)} h`;
}

/** `0.4 %`, `12 %` */
export function percentText(share: number): string {
  return `${Number((share * 100).toFixed(1))} %`;
}
