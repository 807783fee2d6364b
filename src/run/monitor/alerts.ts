/** Thresholds for the figures of a run, and the alerts of a run beyond them. */
import { LATE_MS } from '../../model/absence-reasons.js';
import { Counters } from '../../model/counters.js';
import { HOUR_MS, countText, durationText, numberText } from '../../model/units.js';
import type { Alert } from '../report/run-summary.js';
import type { WrittenRun } from './run-record.js';

export interface AlertContext {
  /** The time of the run, which `--now` may set. */
  readonly nowMs: number;
  /** ` --out DIR` for the commands of an advice; empty for the lake that commands use without the flag. */
  readonly lakeFlag: string;
}

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

interface AlertVerdict extends Omit<Alert, 'id'> {
  readonly when: boolean;
}

type Rule = (run: WrittenRun, context: AlertContext) => AlertVerdict | readonly AlertVerdict[];

/** Most urgent first. */
const RULES: Readonly<Record<string, Rule>> = {
  // By dataset, so that a delisted symbol is no reason: the others of its dataset are newer.
  'not-fresh': ({ summary }, { nowMs, lakeFlag }) =>
    summary.datasets.flatMap(({ market, dataset, newest, unpublished, unpublishedEndMs }) => {
      if (unpublished === null || unpublishedEndMs === null) return [];
      const limitMs = LATE_MS[unpublished.length === 'YYYY-MM'.length ? 'monthly' : 'daily'];
      const ageMs = nowMs - unpublishedEndMs;
      return {
        when: ageMs > limitMs,
        text: `${market} ${dataset} is not fresh: publication has stalled, ${unpublished} is not published ${hoursText(ageMs)} after its end (usual: ${hoursText(limitMs)} at most); newest held: ${newest ?? 'none'}`,
        advice: `cryptodl doctor${lakeFlag} checks the archive; --fill rest takes the newest days from REST`,
      };
    }),

  // The share counts days, because an object has one or a month of them.
  'low-coverage': ({ summary: { outcomes, datasets } }, { lakeFlag }) => {
    const sums = new Counters(...datasets.map(({ days, holes }) => ({ ...days, holes })));
    const [held, holes] = [sums.of('held'), sums.of('holes')];
    const coverage = held / (held + sums.of('missing'));
    return {
      when: holes + outcomes.failed >= LEAST.missingObjects && coverage < THRESHOLDS.coverage,
      text: `the lake holds ${shareText(coverage)} of the days of this run, less than ${shareText(THRESHOLDS.coverage)}: ${countText(holes, 'hole')}, ${numberText(outcomes.failed)} failed`,
      advice: `cryptodl coverage${lakeFlag} shows each gap; cryptodl repair${lakeFlag} fetches missing data`,
    };
  },

  'limiter-triggers': ({ summary: { network, elapsedMs } }) => {
    const { refusals } = network.limiter;
    // Those of a shorter run count like those of an hour: a run of a few minutes has no rate.
    const perHour = Math.round(refusals / Math.max(1, elapsedMs / HOUR_MS));
    return {
      when: perHour > THRESHOLDS.limiterTriggers,
      text: `${numberText(perHour)} refusals by a limit of the host (429, 418) in an hour, more than ${THRESHOLDS.limiterTriggers}`,
      advice: 'lower --concurrency, or give a longer --request-interval',
    };
  },

  'retry-rate': ({ summary: { network, requests } }, { lakeFlag }) => {
    const { total } = network.retries;
    const rate = total / requests;
    return {
      when: total >= LEAST.retries && rate > THRESHOLDS.retryRate,
      text: `retry rate ${shareText(rate)} (${numberText(total)} of ${numberText(requests)} requests), more than ${shareText(THRESHOLDS.retryRate)}`,
      advice: `cryptodl doctor${lakeFlag} checks the network`,
    };
  },

  'retry-success': ({ summary: { network } }, { lakeFlag }) => {
    const { requests, succeeded } = network.retries;
    const share = succeeded / requests;
    return {
      when: requests >= LEAST.retriedRequests && share < THRESHOLDS.retrySuccess,
      text: `${shareText(share)} of retried requests succeeded (${numberText(succeeded)} of ${numberText(requests)}), less than ${shareText(THRESHOLDS.retrySuccess)}`,
      advice: `cryptodl doctor${lakeFlag} checks the hosts; more --retries, or a longer --retry-delay, outlast a longer fault`,
    };
  },

  'pool-use': ({ summary: { network, elapsedMs } }) => {
    const { pool, mostInFlight, costMs } = network;
    const { socket = 0, 'socket-of-host': socketOfHost = 0 } = costMs.waits;
    const waitedMs = socket + socketOfHost;
    // Requests wait for a socket of a host only while all sockets of the host are in use.
    const use = socketOfHost > socket ? 1 : mostInFlight / pool.most;
    const isLong = waitedMs >= POOL_WAIT_MS && waitedMs > elapsedMs * POOL_WAIT_SHARE;
    return {
      when: isLong && use > THRESHOLDS.poolUse,
      text: `${shareText(use)} of the sockets in use, more than ${shareText(THRESHOLDS.poolUse)}, and requests waited ${durationText(waitedMs)} of ${durationText(elapsedMs)} for one`,
      advice: 'a higher --pool-limit or --pool-limit-per-host, or a lower --concurrency',
    };
  },
};

/** The most urgent one first. */
export function alertsOf(run: WrittenRun, context: AlertContext): Alert[] {
  return Object.entries(RULES).flatMap(([id, rule]) =>
    [rule(run, context)]
      .flat()
      .filter(({ when }) => when)
      .map(({ text, advice }) => ({ id, text, advice })),
  );
}

const hoursText = (ms: number): string => `${Math.round(ms / HOUR_MS)} h`;

/** `0.4 %`, `12 %` */
export const shareText = (share: number): string => `${Number((share * 100).toFixed(1))} %`;
