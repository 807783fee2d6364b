/** Tells of a run as it goes: people on stderr, programs on stdout, the log. */
import type { Clock } from '../clock.js';
import type { RetryEvent } from '../errors.js';
import type { PartitionPlan, PlanTotals, Task } from '../task.js';
import { durationText } from '../units.js';
import type { Log } from './log.js';
import type { Progress } from './progress.js';
import { startProgress } from './progress.js';
import type { Outcome } from './tally.js';
import { Tally } from './tally.js';

export interface ReporterOptions {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  readonly clock: Clock;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly progress: 'bar' | 'plain' | 'none';
  readonly log: Log;
}

/** Waits shorter than this are not worth a line. */
const LONG_WAIT_MS = 5000;

export class Reporter {
  readonly tally = new Tally();
  readonly #options: ReporterOptions;
  #progress: Progress | undefined;
  #saidWaitAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** Plain lines for people; kept back by --quiet. */
  say(lines: readonly string[]): void {
    if (!this.#options.quiet) this.#print(lines);
  }

  /** Lines that also --quiet shows. */
  alarm(lines: readonly string[]): void {
    this.#print(lines);
  }

  warn(message: string): void {
    this.#print([`warning: ${message}`]);
    this.event('warning', { message });
    this.#options.log.logger.warn(message);
  }

  event(event: string, fields: object): void {
    if (this.#options.json) this.#options.stdout.write(`${JSON.stringify({ event, ...fields })}\n`);
  }

  startProgress(totals: PlanTotals, inFlight: () => number): void {
    const { tally } = this;
    const { quiet, progress, stderr, clock } = this.#options;
    this.#progress = startProgress({
      mode: quiet ? 'none' : progress,
      stream: stderr,
      clock,
      state: () => ({
        objects: tally.outcomes.ok + tally.outcomes.partial + tally.outcomes.failed,
        totalObjects: totals.fetch,
        bytes: tally.bytes,
        totalBytes: totals.fetchBytes,
        inFlight: inFlight(),
        retried: tally.retries,
        failed: tally.outcomes.failed,
      }),
    });
  }

  stopProgress(): void {
    this.#progress?.stop();
    this.#progress = undefined;
  }

  outcome(plan: PartitionPlan, task: Task, outcome: Outcome): void {
    const { key } = task.object;
    this.tally.count(key, outcome);
    const facts = factsOf(outcome);
    this.event('object', { outcome: outcome.kind, ...plan.series, key, ...facts });
    const level = outcome.kind === 'failed' ? 'error' : 'debug';
    this.#options.log.logger[level]({ key, ...facts }, outcome.kind);
  }

  retry(event: RetryEvent): void {
    if (event.usesAttempt) this.tally.retries += 1;
    const { clock, log } = this.#options;
    const fields = {
      traceId: event.traceId,
      retry_attempt: event.retry,
      original_error: event.error.code,
      upstream: new URL(event.url).host,
      url: event.url,
      delayMs: Math.round(event.delayMs),
    };
    log.logger.info({ ...fields, message: event.error.message }, 'retry');
    this.event('retry', fields);
    if (event.delayMs < LONG_WAIT_MS || clock.monotonic() - this.#saidWaitAt < LONG_WAIT_MS) return;
    this.#saidWaitAt = clock.monotonic();
    this.say([`waiting ${durationText(event.delayMs)}: ${event.error.message}`]);
  }

  #print(lines: readonly string[]): void {
    this.#progress?.clear();
    this.#options.stderr.write(lines.map((line) => `${line}\n`).join(''));
  }
}

/** An outcome as plain fields. */
function factsOf(outcome: Outcome): object {
  if (outcome.kind === 'failed') {
    const { code, retryable, attempts, message } = outcome.error;
    return { code, retryable, attempts, message };
  }
  const { kind: _, ...facts } = outcome;
  return facts;
}
