/** The messages about a run that its options ask for: `--ping` and `--alert-webhook`. */
import { basename } from 'node:path';
import type { ErrorCode } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { TOOL_VERSION } from '../model/version.js';
import type { RunSummary } from '../report/run-summary.js';
import { absolutePath, lakeFlag } from '../text/printable.js';
import { Pings } from './pings.js';
import type { NotifyOptions } from './send.js';
import { postAlerts } from './webhook.js';

export interface NoticesOptions extends Omit<NotifyOptions, 'url'> {
  readonly verb: string;
  readonly job: string | undefined;
}

export interface EndedRun {
  readonly exitCode: ExitCode;
  /** Undefined if the run could not begin. */
  readonly summary?: RunSummary;
  /** The error of a run that could not begin. */
  readonly error?: ErrorCode;
}

/** Reports the start of a run at once, and its end when `end` is called. */
export class RunNotices {
  readonly #options: NoticesOptions;
  readonly #pings: Pings | undefined;

  /** Throws a usage error for a --ca-file that cannot be read. */
  constructor(options: NoticesOptions) {
    this.#options = options;
    const { ping } = options.options;
    this.#pings = ping === undefined ? undefined : new Pings({ ...options, url: ping });
  }

  /** Resolves when the messages have arrived or failed; failures are warnings. */
  async end(run: EndedRun): Promise<void> {
    const { alertWebhook } = this.#options.options;
    const isTold = run.exitCode !== 0 || (run.summary?.alerts.length ?? 0) > 0;
    await Promise.all([
      this.#pings?.end(run.exitCode),
      alertWebhook === undefined || !isTold
        ? undefined
        : postAlerts({ ...this.#options, url: alertWebhook }, messageOf(this.#options, run)),
    ]);
  }
}

/** The body of the POST. It has the name of the lake, but no path of this machine. */
function messageOf(
  { options, surroundings, clock, verb, job }: NoticesOptions,
  { exitCode, summary, error }: EndedRun,
): object {
  const root = absolutePath(options.out, surroundings.home);
  const alerts = summary?.alerts ?? [];
  return {
    tool: 'cryptodl',
    version: TOOL_VERSION,
    at: new Date(clock.now()).toISOString(),
    lake: basename(root),
    verb,
    job: job ?? null,
    exitCode,
    error: error ?? null,
    alerts: alerts.map((alert) => ({ ...alert, advice: alert.advice.replaceAll(lakeFlag(root), '') })),
    summary: summary === undefined ? null : countsOf(summary),
  };
}

function countsOf(summary: RunSummary): object {
  const { outcomes, failed, undone, rows, bytes, requests, retries, elapsedMs } = summary;
  return { outcomes, failed, undone, rows, bytes, requests, retries, elapsedMs };
}
