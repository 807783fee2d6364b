/** What runs would do with the options and with this machine, as `cryptodl doctor` looks at it. */
import { ARCHIVE_MOST, REST_MOST } from '../http/limits.js';
import { backoffOf } from '../http/stack.js';
import { mostInFlight, socketsPerHost } from '../http/transport/sockets.js';
import { countText, durationText } from '../model/units.js';
import type { Scene } from './check-hosts.js';
import type { Finding, Issue } from './finding.js';
import { judged } from './finding.js';
import { checkFiles, checkMemory, checkThreads } from './machine.js';

export function examineSettings({ options, limits, hosts }: Scene): Finding[] {
  const { concurrency: choice } = options;
  const most = mostInFlight(options);
  const connections = socketsPerHost(options);
  const maxWaitMs = options.maxWaitMs;
  const process = limits();
  return [
    checkMemory(process),
    checkFiles({ openFiles: process.openFiles, most, sockets: connections }),
    checkThreads(process.threads),
    checkConcurrency({ choice, archiveMost: ARCHIVE_MOST, restMost: REST_MOST }),
    checkRetries({
      ...backoffOf(options),
      preset: options.retryPreset,
      givenFactor: options.retryFactor,
      maxWaitMs,
    }),
    checkBreaker({
      failures: options.breakerFailures,
      successes: options.breakerSuccesses,
      openMs: options.breakerOpenMs,
      blockedMs: options.blockedWaitMs,
      maxWaitMs,
    }),
    checkPool({
      most,
      limit: options.poolLimit,
      limitPerHost: options.poolLimitPerHost,
      connections,
      keepAliveMs: options.keepAliveMs,
      hasTls: !options.http2 && hosts.some(({ address }) => address.startsWith('https:')),
    }),
  ];
}

// Whether what the user chose for requests makes sense together: concurrency, retries, breaker, sockets.

interface ConcurrencyQuestion {
  readonly choice:
    { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };
  /** More in flight gain nothing there. */
  readonly archiveMost: number;
  readonly restMost: number;
}

function checkConcurrency({ choice, archiveMost, restMost }: ConcurrencyQuestion): Finding {
  const isAuto = choice.kind === 'auto';
  const most = isAuto ? choice.max : choice.limit;
  const ofRest = most > restMost ? `; more than ${restMost} gain nothing with metrics` : '';
  const issues: Issue[] = [];
  if (most > archiveMost)
    issues.push({
      found: `more than ${archiveMost} gain nothing at the archive, and may get this address refused`,
      next: `--concurrency ${isAuto ? `auto:${archiveMost}` : 'auto'}`,
    });
  const found = isAuto ? `auto, up to ${most} objects in flight` : `${most} objects in flight`;
  return judged('concurrency', issues.length === 0 ? `${found}${ofRest}` : found, issues, { most });
}

interface RetryQuestion {
  readonly preset: string;
  readonly retries: number;
  readonly strategy: string;
  readonly baseDelayMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  /** Undefined unless it was given by itself. */
  readonly givenFactor: number | undefined;
  readonly maxWaitMs: number;
}

/** Strategies whose steps do not grow by the factor. */
const WITHOUT_FACTOR: ReadonlySet<string> = new Set(['fixed', 'linear', 'decorrelated']);

function checkRetries(question: RetryQuestion): Finding {
  const { preset, retries, strategy, baseDelayMs, maxDelayMs, givenFactor, maxWaitMs } = question;
  const longestMs = longestDelayMs(question);
  const issues: Issue[] = [];
  if (retries === 0)
    issues.push({ found: 'what fails is not asked for again before the next round', next: '--retries 2' });
  if (baseDelayMs > maxDelayMs)
    issues.push({
      found: `the delay of ${durationText(baseDelayMs)} is above the cap of ${durationText(maxDelayMs)}, which is taken instead`,
      next: `--retry-max-delay ${flagText(baseDelayMs)}`,
    });
  if (givenFactor !== undefined && WITHOUT_FACTOR.has(strategy))
    issues.push({
      found: `--retry-factor changes nothing with --retry-strategy ${strategy}`,
      next: '--retry-strategy full',
    });
  if (longestMs > maxWaitMs)
    issues.push({
      found: `a retry may have to wait ${durationText(longestMs)}, which --max-wait ${durationText(maxWaitMs)} does not allow: its object fails`,
      next: `--max-wait ${flagText(longestMs)}`,
    });
  const delays = `${durationText(Math.min(baseDelayMs, maxDelayMs))} to ${durationText(longestMs)}`;
  const found =
    retries === 0 ? 'none' : `${retries} per request after ${delays} (${strategy}, preset ${preset})`;
  return judged('retries', found, issues, { retries, longestDelayMs: longestMs });
}

function longestDelayMs({ strategy, retries, baseDelayMs, factor, maxDelayMs }: RetryQuestion): number {
  if (retries === 0) return 0;
  const last = retries - 1;
  switch (strategy) {
    case 'fixed':
      return Math.min(maxDelayMs, baseDelayMs);
    case 'linear':
      return Math.min(maxDelayMs, baseDelayMs * retries);
    case 'decorrelated':
      return Math.min(maxDelayMs, baseDelayMs * 3 ** retries);
    default:
      return Math.min(maxDelayMs, baseDelayMs * factor ** last);
  }
}

interface BreakerQuestion {
  readonly failures: number;
  readonly successes: number;
  readonly openMs: number;
  readonly blockedMs: number;
  readonly maxWaitMs: number;
}

/** Of so many in a row one fails on any line: the breaker hardly ever closes. */
const MANY_SUCCESSES = 50;

function checkBreaker({ failures, successes, openMs, blockedMs, maxWaitMs }: BreakerQuestion): Finding {
  const issues: Issue[] = [];
  if (failures === 1)
    issues.push({ found: 'one failure stops all requests to a host', next: '--breaker-failures 5' });
  if (openMs === 0)
    issues.push({ found: 'a failing host is not left alone at all', next: '--breaker-open 30s' });
  if (successes > MANY_SUCCESSES)
    issues.push({
      found: `after ${successes} successes in a row it hardly ever closes`,
      next: '--breaker-successes 3',
    });
  for (const [flag, ms] of [
    ['breaker-open', openMs],
    ['blocked-wait', blockedMs],
  ] as const)
    if (ms > maxWaitMs)
      issues.push({
        found: `--${flag} ${durationText(ms)} is longer than --max-wait ${durationText(maxWaitMs)}: objects fail before the host is asked again`,
        next: `--max-wait ${flagText(ms)}`,
      });
  const found = `opens for ${durationText(openMs)} after ${countText(failures, 'failure')} in a row, closes after ${countText(successes, 'good answer')}`;
  return judged('breaker', found, issues, { failures, successes, openMs });
}

interface PoolQuestion {
  /** Objects in flight at most. */
  readonly most: number;
  readonly limit: number | undefined;
  readonly limitPerHost: number | undefined;
  /** Of one host, as a run has them. */
  readonly connections: number;
  readonly keepAliveMs: number;
  /** A host is asked over TLS and HTTP/1.1. */
  readonly hasTls: boolean;
}

function checkPool(question: PoolQuestion): Finding {
  const { most, limit, limitPerHost, connections, keepAliveMs, hasTls } = question;
  const issues: Issue[] = [];
  for (const [flag, sockets] of [
    ['pool-limit', limit],
    ['pool-limit-per-host', limitPerHost],
  ] as const)
    if (sockets !== undefined && sockets < most)
      issues.push({
        found: `--${flag} ${sockets} is less than ${most} objects in flight, which wait for sockets`,
        next: `--concurrency auto:${sockets} or --${flag} ${most * 2}`,
      });
  if (limit !== undefined && limitPerHost !== undefined && limitPerHost > limit)
    issues.push({
      found: `--pool-limit-per-host ${limitPerHost} changes nothing below --pool-limit ${limit}`,
      next: `--pool-limit-per-host ${limit}`,
    });
  if (keepAliveMs === 0 && hasTls)
    issues.push({ found: 'each request makes a TLS connection of its own', next: '--keep-alive 30s' });
  const kept = keepAliveMs === 0 ? 'none is kept' : `idle ones are kept for ${durationText(keepAliveMs)}`;
  return judged('pool', `up to ${connections} sockets to a host, ${kept}`, issues, {
    connections,
    keepAliveMs,
  });
}

/** As a flag takes it. */
function flagText(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${Math.ceil(ms)}ms`;
}
