/** Reports the events of a run: lines on stderr for people, JSON on stdout for programs, and the log. */
import type { AttemptEnd } from '../../model/fetch.js';
import type { CryptodlError } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import type { Announcement, Observer, RetryEvent } from '../../model/observer.js';
import { durationText } from '../../model/units.js';
import type { TaskOutcome } from '../../model/outcome.js';
import { printLines } from '../../text/printable.js';
import { logAttempt, logRetry, type Log } from './log.js';
import type { RunFollower } from './live-run.js';
import { RunProgress, progressMode, type ProgressOptions } from './run-progress.js';
import { planBlock } from './plan-block.js';
import type { Resolved } from '../../plan/options/resolve.js';

export interface ReporterOptions extends Pick<Io, 'stdout' | 'stderr' | 'clock'> {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly progress: ProgressOptions['mode'];
  readonly log: Log;
  /** The name of the job, if there are several. It precedes the first line, and each event contains it. */
  readonly job?: string | undefined;
  /** Other jobs print at the same time: each line begins with the name of the job. */
  readonly isBeside?: boolean;
}

/** Shorter waits get no line. */
const LONG_WAIT_MS = 5000;
/** Warnings that a run with `--quiet` keeps, at most. The log has all warnings. */
const MOST_WARNINGS = 20;

export class Reporter implements Observer {
  readonly #progress: RunProgress;
  /** Warnings of a run with `--quiet` that were not printed yet. */
  readonly #warnings: string[] = [];
  #unkeptWarnings = 0;
  #lastWaitLineAt = Number.NEGATIVE_INFINITY;
  /** Prefix of each line while other jobs print. */
  readonly #label: string;
  /** Precedes the first line of a job that prints alone. */
  readonly #title: string[];

  constructor(private readonly options: ReporterOptions) {
    const { quiet, json, progress, stderr: stream, clock, job, isBeside = false } = options;
    this.#label = isBeside && job !== undefined ? `[${job}] ` : '';
    this.#title = isBeside || job === undefined ? [] : [`[${job}]`];
    // Events on stdout are data, so `--quiet` does not end them.
    const mode = quiet && !(json && progress === 'json') ? 'none' : progress;
    this.#progress = new RunProgress({
      mode,
      label: this.#label,
      stream,
      clock,
      emit: (fields) => {
        if (json) this.event('progress', fields);
        else printLines(stream, [{ event: 'progress', job, ...fields }]);
      },
    });
  }

  get follower(): RunFollower {
    return this.#progress;
  }

  /** Lines for people; not printed with `--quiet`. */
  say(lines: readonly string[]): void {
    if (!this.options.quiet) this.#print(lines);
  }

  /** Lines that are printed also with `--quiet`, after the kept warnings. */
  alarm(lines: readonly string[]): void {
    const more = this.#unkeptWarnings === 0 ? [] : [`… and ${this.#unkeptWarnings} more warnings`];
    this.#print([...this.#warnings.splice(0), ...more, ...lines]);
    this.#unkeptWarnings = 0;
  }

  /** A line that the user asked for; printed also with `--quiet`. */
  note(line: string): void {
    this.#print([line]);
    this.options.log.logger.info(line);
  }

  waiting(message: string): void {
    this.say([message]);
    this.event('waiting', { message });
    this.options.log.logger.info(message);
  }

  /**
   * Prints a warning. With `--quiet`, it is kept and printed only with later `alarm` lines. `isKept`: false for an output that the user asked
   * for and does not get.
   */
  warn(message: string, isKept = this.options.quiet): void {
    const line = `warning: ${message}`;
    if (!isKept) this.#print([line]);
    else if (this.#warnings.length < MOST_WARNINGS) this.#warnings.push(line);
    else this.#unkeptWarnings += 1;
    this.event('warning', { message });
    this.options.log.logger.warn(message);
  }

  event(event: string, fields: object): void {
    const { json, stdout, job } = this.options;
    if (!json) return;
    this.#progress.clear();
    printLines(stdout, [{ event, job, ...fields }]);
  }

  announce(announcement: Announcement): void {
    this.say(planBlock(announcement));
    const { range, terms, totals: all } = announcement;
    const { restWeights: requests, ...totals } = all;
    this.event('plan', { ...totals, requests, range, terms });
  }

  arrived(): void {
    // The progress counts it.
  }

  /** An object that has changed upstream has an event of its own, for users of its old rows. */
  outcome(outcome: TaskOutcome): void {
    const { outcome: kind, ...facts } = outcome;
    this.event('object', outcome);
    if ('changed' in outcome && outcome.changed !== undefined) {
      const { market, dataset, interval, symbol, period, key, bytes, changed } = outcome;
      const to = { bytes, sha256: changed.sha256 };
      this.event('changed', { market, dataset, interval, symbol, period, key, from: changed.from, to });
    }
    this.options.log.logger[kind === 'failed' ? 'error' : 'debug'](facts, kind);
  }

  retry(event: RetryEvent): void {
    const { clock, log } = this.options;
    const fields = logRetry(log, event);
    this.event('retry', fields);
    if (event.delayMs < LONG_WAIT_MS || clock.monotonic() - this.#lastWaitLineAt < LONG_WAIT_MS) return;
    this.#lastWaitLineAt = clock.monotonic();
    this.say([`waiting ${durationText(event.delayMs)}: ${event.error.message}`]);
  }

  attempt(attempt: AttemptEnd): void {
    logAttempt(this.options.log, attempt);
  }

  /** Prints the last lines of a run. `error`: the error that ended it early. */
  end(lines: readonly string[], how: { error: CryptodlError | undefined; isWell: boolean }): void {
    this.#progress.stop();
    const { error, isWell } = how;
    if (error !== undefined)
      this.alarm([`cryptodl: ${error.message}`, ...(error.hint === undefined ? [] : [`  ${error.hint}`])]);
    if (isWell) this.say(lines);
    else this.alarm(lines);
  }

  /** Ends the progress of a run that ends early. A live line is replaced by another one, because the end may take seconds. */
  ending(line?: string): void {
    if (this.#progress.stop() && line !== undefined) this.say([line]);
  }

  close(): void {
    this.#progress.stop();
    this.options.log.close();
  }

  #print(lines: readonly string[]): void {
    this.#progress.clear();
    // In these lines a tab is part of a name, so it is escaped. Only tables for programs separate cells with tabs.
    const shown = lines.map((line) => line.replaceAll('\t', String.raw`\t`));
    printLines(this.options.stderr, [
      ...this.#title.splice(0),
      ...shown.map((line) => `${this.#label}${line}`),
    ]);
  }
}

/** `isBeside`: other jobs print at the same time. */
export function openReporter(
  { options }: Resolved<'json' | 'log-file' | 'log-level' | 'progress' | 'quiet'>,
  io: Io,
  log: Log,
  job?: string,
  isBeside = false,
): Reporter {
  return new Reporter({
    ...io,
    json: options.json,
    quiet: options.quiet,
    progress: progressMode(options, io, isBeside),
    log,
    isBeside,
    job,
  });
}
