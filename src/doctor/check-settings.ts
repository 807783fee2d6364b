/** Checks the request options against each other and against the machine: concurrency, retries, breaker, sockets. */
import { ARCHIVE_MOST, REST_MOST } from '../download/http-session.js';
import { backoffOf } from '../http/request-options.js';
import { socketsPerHost } from '../http/transport/sockets.js';
import { countText, durationText } from '../model/units.js';
import { mostInFlight } from '../queue/concurrency.js';
import type { CheckContext } from './check-hosts.js';
import type { CheckResult, Issue } from './check-result.js';
import { settingsResult } from './check-result.js';
import { checkFiles, checkMemory, checkThreads } from './check-machine.js';

/** One result for each group of settings, without any request. */
export function checkSettings({ options, origins, limits, hosts }: CheckContext): CheckResult[] {
  const { concurrency: choice } = options;
  const most = mostInFlight(choice);
  const connections = socketsPerHost({ ...options, mostInFlight: most });
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
      isFactorGiven: origins['retry-factor'] !== 'default',
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

interface ConcurrencyInput {
  readonly choice:
    { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };
  /** More objects in flight than this are not faster. */
  readonly archiveMost: number;
  readonly restMost: number;
}

function checkConcurrency({ choice, archiveMost, restMost }: ConcurrencyInput): CheckResult {
  const isAuto = choice.kind === 'auto';
  const most = isAuto ? choice.max : choice.limit;
  const ofRest = most > restMost ? `; with metrics, more than ${restMost} are not faster` : '';
  const issues: Issue[] = [];
  if (most > archiveMost)
    issues.push({
      found: `more than ${archiveMost} are not faster at the archive, and its firewall may refuse this address`,
      next: `--concurrency ${isAuto ? `auto:${archiveMost}` : 'auto'}`,
    });
  const found = isAuto ? `auto, up to ${most} objects in flight` : `${most} objects in flight`;
  return settingsResult('concurrency', issues.length === 0 ? `${found}${ofRest}` : found, issues, { most });
}

interface RetryInput {
  readonly preset: string;
  readonly retries: number;
  readonly strategy: string;
  readonly baseDelayMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  /** False if the factor is that of the preset. */
  readonly isFactorGiven: boolean;
  readonly maxWaitMs: number;
}

/** Strategies whose delays do not grow by the factor. */
const WITHOUT_FACTOR: ReadonlySet<string> = new Set(['fixed', 'linear', 'decorrelated']);

function checkRetries(input: RetryInput): CheckResult {
  const { preset, retries, strategy, baseDelayMs, maxDelayMs, isFactorGiven, maxWaitMs } = input;
  const longestMs = longestDelayMs(input);
  const issues: Issue[] = [];
  if (retries === 0)
    issues.push({ found: 'a failed request is not retried before the next round', next: '--retries 2' });
  if (baseDelayMs > maxDelayMs)
    issues.push({
      found: `the delay of ${durationText(baseDelayMs)} is above the maximum of ${durationText(maxDelayMs)}, which is used instead`,
      next: `--retry-max-delay ${flagText(baseDelayMs)}`,
    });
  if (isFactorGiven && WITHOUT_FACTOR.has(strategy))
    issues.push({
      found: `--retry-factor has no effect with --retry-strategy ${strategy}`,
      next: '--retry-strategy full',
    });
  if (longestMs > maxWaitMs)
    issues.push({
      found: `a retry may have to wait ${durationText(longestMs)}, but --max-wait is ${durationText(maxWaitMs)}: the object then fails`,
      next: `--max-wait ${flagText(longestMs)}`,
    });
  const delays = `${durationText(Math.min(baseDelayMs, maxDelayMs))} to ${durationText(longestMs)}`;
  const found =
    retries === 0 ? 'none' : `${retries} per request after ${delays} (${strategy}, preset ${preset})`;
  return settingsResult('retries', found, issues, { retries, longestDelayMs: longestMs });
}

function longestDelayMs({ strategy, retries, baseDelayMs, factor, maxDelayMs }: RetryInput): number {
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

interface BreakerInput {
  readonly failures: number;
  readonly successes: number;
  readonly openMs: number;
  readonly blockedMs: number;
  readonly maxWaitMs: number;
}

/** On a connection with occasional failures, one of so many requests in a row often fails: the breaker then almost never closes. */
const MANY_SUCCESSES = 50;

function checkBreaker({ failures, successes, openMs, blockedMs, maxWaitMs }: BreakerInput): CheckResult {
  const issues: Issue[] = [];
  if (failures === 1)
    issues.push({ found: 'one failure stops all requests to a host', next: '--breaker-failures 5' });
  if (openMs === 0)
    issues.push({ found: 'the breaker never pauses a failing host', next: '--breaker-open 30s' });
  if (successes > MANY_SUCCESSES)
    issues.push({
      found: `a breaker that needs ${successes} successes in a row almost never closes`,
      next: '--breaker-successes 3',
    });
  for (const [flag, ms] of [
    ['breaker-open', openMs],
    ['blocked-wait', blockedMs],
  ] as const)
    if (ms > maxWaitMs)
      issues.push({
        found: `--${flag} ${durationText(ms)} is longer than --max-wait ${durationText(maxWaitMs)}: objects fail before the next request to the host`,
        next: `--max-wait ${flagText(ms)}`,
      });
  const found = `opens for ${durationText(openMs)} after ${countText(failures, 'failure')} in a row, closes after ${countText(successes, 'successful request')}`;
  return settingsResult('breaker', found, issues, { failures, successes, openMs });
}

interface PoolInput {
  /** Objects in flight at most. */
  readonly most: number;
  readonly limit: number | undefined;
  readonly limitPerHost: number | undefined;
  /** Sockets per host in a run. */
  readonly connections: number;
  readonly keepAliveMs: number;
  /** True when a host is reached over TLS and HTTP/1.1. */
  readonly hasTls: boolean;
}

function checkPool(input: PoolInput): CheckResult {
  const { most, limit, limitPerHost, connections, keepAliveMs, hasTls } = input;
  const issues: Issue[] = [];
  for (const [flag, sockets] of [
    ['pool-limit', limit],
    ['pool-limit-per-host', limitPerHost],
  ] as const)
    if (sockets !== undefined && sockets < most)
      issues.push({
        found: `--${flag} ${sockets} is less than ${most} objects in flight, so objects wait for sockets`,
        next: `--concurrency auto:${sockets} or --${flag} ${most * 2}`,
      });
  if (limit !== undefined && limitPerHost !== undefined && limitPerHost > limit)
    issues.push({
      found: `--pool-limit-per-host ${limitPerHost} has no effect with --pool-limit ${limit}`,
      next: `--pool-limit-per-host ${limit}`,
    });
  if (keepAliveMs === 0 && hasTls)
    issues.push({ found: 'each request opens a new TLS connection', next: '--keep-alive 30s' });
  const kept =
    keepAliveMs === 0 ? 'closed after each request' : `kept open for ${durationText(keepAliveMs)} when idle`;
  return settingsResult('pool', `up to ${connections} sockets per host, ${kept}`, issues, {
    connections,
    keepAliveMs,
  });
}

/** In the syntax of a flag. */
function flagText(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${Math.ceil(ms)}ms`;
}
