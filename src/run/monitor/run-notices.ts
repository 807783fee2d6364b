/** The messages about a run that its options ask for: `--ping` and `--alert-webhook`. Their requests pass outside of the request stack, without throttle, breaker and log. */
import { basename } from 'node:path';
import { mapWireError } from '../../http/transport/error-map.js';
import { createPools, type Pools } from '../../http/transport/pool.js';
import { USER_AGENT } from '../../http/transport/sent-headers.js';
import { poolOptions } from '../../http/transport/sockets.js';
import type { Clock } from '../../model/clock.js';
import { CryptodlError, toCryptodlError, type ErrorCode } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { durationText } from '../../model/units.js';
import { TOOL_VERSION } from '../../model/version.js';
import { proxiesOf } from '../../files/proxies.js';
import type { Options } from '../../plan/options/flags.js';
import type { SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import type { RunSummary, VerdictSummary } from '../report/run-summary.js';
import { absolutePath, lakeFlag } from '../../text/printable.js';

export interface NoticesOptions extends Pick<VerbRequest, 'surroundings' | 'clock' | 'observer'> {
  readonly options: Options<SessionFlag | 'alert-webhook' | 'ping'>;
  readonly verb: string;
  readonly job: string | undefined;
}

export interface EndedRun {
  readonly exitCode: ExitCode;
  /** Undefined if the run could not begin. */
  readonly summary?: RunSummary;
  readonly error?: ErrorCode;
  /** Undefined for a lake without orders. */
  readonly verdict?: VerdictSummary | undefined;
}

/**
 * Reports the start of a run at once. The returned function reports its end, and resolves when the messages have arrived or failed. Messages
 * that do not arrive are warnings, one of each kind. Throws a usage error for a --ca-file that cannot be read.
 */
export function openNotices(options: NoticesOptions): (run: EndedRun) => Promise<void> {
  const { clock, observer, surroundings } = options;
  const { ping, alertWebhook } = options.options;
  if (ping === undefined && alertWebhook === undefined) return () => Promise.resolve();
  // One connection, by the first of several proxies.
  const one = {
    ...options.options,
    mostInFlight: 1,
    poolLimit: undefined,
    poolLimitPerHost: 1,
    http2: false,
  };
  const proxies = proxiesOf(one.proxy, surroundings);
  const pools = createPools(poolOptions({ options: one, clock, proxies }));
  const warned = new Set<string>();
  const tell = async (flag: string, url: string, content?: Content): Promise<void> => {
    try {
      await send(pools, clock, url, content);
    } catch (error) {
      if (!warned.has(flag)) observer.warn(`--${flag}: ${toCryptodlError(error).message}`);
      warned.add(flag);
    }
  };
  const tellPing = async (what: string, text?: string): Promise<void> => {
    if (ping === undefined) return;
    // Appended to the path: `…/uuid/fail?rid=1`.
    const url = new URL(ping);
    if (what !== '') url.pathname = url.pathname.replace(/(?<!\/)\/*$/, what);
    await tell('ping', url.href, text);
  };
  const started = tellPing('/start');
  return async (run) => {
    const { exitCode, summary, verdict } = run;
    // Data that no run may bring are no news after each run.
    const isTold = exitCode !== 0 || (summary?.alerts.length ?? 0) > 0 || verdict?.exitCode === 3;
    await Promise.all([
      started.then(() => tellPing(exitCode === 0 ? '' : '/fail', verdict?.text)),
      isTold && alertWebhook !== undefined
        ? tell('alert-webhook', alertWebhook, messageOf(options, run))
        : undefined,
    ]);
    await pools.close();
  };
}

/** The body of the POST. It has the name of the lake, but no path of this machine. */
function messageOf(
  { options, surroundings, clock, verb, job }: NoticesOptions,
  { exitCode, summary, error, verdict }: EndedRun,
): object {
  const root = absolutePath(options.out, surroundings.home);
  const alerts = summary?.alerts ?? [];
  const ofLake = (text: string): string => text.replaceAll(lakeFlag(root), '');
  return {
    verdict: verdict === undefined ? null : { ...verdict, next: verdict.next && ofLake(verdict.next) },
    tool: 'cryptodl',
    version: TOOL_VERSION,
    at: new Date(clock.now()).toISOString(),
    lake: basename(root),
    verb,
    job: job ?? null,
    exitCode,
    error: error ?? null,
    alerts: alerts.map((alert) => ({ ...alert, advice: ofLake(alert.advice) })),
    summary: summary === undefined ? null : countsOf(summary),
  };
}

function countsOf(summary: RunSummary): object {
  const { outcomes, failed, undone, rows, bytes, requests, retries, elapsedMs } = summary;
  return { outcomes, failed, undone, rows, bytes, requests, retries, elapsedMs };
}

/** The end of a run waits for its messages: so long for all attempts, and for one. */
export const LIMIT_MS = 10_000;
const ATTEMPT_MS = 5000;
const DELAYS_MS = [250, 500, 1000];

type Content = string | object;

/**
 * Sends a POST with the content, otherwise a GET, until the receiver answers with 2xx. Rejects with the typed error of the last attempt, which
 * names the host but not the path, because the path may be a secret.
 */
export async function send(pools: Pools, clock: Clock, url: string, content?: Content): Promise<void> {
  const endsAt = clock.monotonic() + LIMIT_MS;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const timeoutMs = Math.min(ATTEMPT_MS, endsAt - clock.monotonic());
      await sendOnce(pools, { clock, timeoutMs }, url, content);
      return;
    } catch (thrown) {
      const error = toCryptodlError(thrown);
      // Some receivers of pings know only GET.
      if (error.code === 'http-refused' && typeof content === 'string') return send(pools, clock, url);
      const delayMs = DELAYS_MS[attempt];
      const mayPass = error.retryable || error.code === 'proxy-refused';
      if (!mayPass || delayMs === undefined || clock.monotonic() + delayMs >= endsAt) throw error;
      await clock.sleep(delayMs);
    }
  }
}

async function sendOnce(
  pools: Pools,
  { clock, timeoutMs }: { readonly clock: Pick<Clock, 'timer'>; readonly timeoutMs: number },
  url: string,
  content?: Content,
): Promise<void> {
  const { origin, pathname, search, host } = new URL(url);
  const isObject = typeof content === 'object';
  const type = isObject ? 'application/json' : 'text/plain; charset=utf-8';
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => {
    stop.abort(new CryptodlError('total-timeout', `${host}: no answer within ${durationText(timeoutMs)}`));
  });
  try {
    const { statusCode: status, body } = await pools.of(origin).request({
      origin,
      path: pathname + search,
      method: content === undefined ? 'GET' : 'POST',
      headers: { 'user-agent': USER_AGENT, ...(content !== undefined && { 'content-type': type }) },
      body: isObject ? JSON.stringify(content) : (content ?? null),
      signal: stop.signal,
    });
    await body.dump();
    // undici gives no final status below 200.
    if (status < 300) return;
    const code = status >= 500 || status === 429 ? 'http-server-error' : 'http-refused';
    throw new CryptodlError(code, `${host} answered ${status}`);
  } catch (error) {
    throw mapWireError(
      error instanceof Error ? error : new Error(String(error)),
      origin,
      pools.proxyOf(origin),
    );
  } finally {
    timer.cancel();
  }
}
