/** The messages about a run that its options ask for: `--ping` and `--alert-webhook`. Their requests pass outside of the request stack, without throttle, breaker and log. */
import { basename } from 'node:path';
import { createPools } from '../../http/transport/pool.js';
import { poolOptions } from '../../http/transport/sockets.js';
import { toCryptodlError, type ErrorCode } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { TOOL_VERSION } from '../../model/version.js';
import { proxiesOf } from '../../files/proxies.js';
import type { Options } from '../../plan/options/flags.js';
import type { SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import type { RunSummary, VerdictSummary } from '../report/run-summary.js';
import { absolutePath, lakeFlag } from '../../text/printable.js';
import { send, type Content } from './send-notice.js';

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
