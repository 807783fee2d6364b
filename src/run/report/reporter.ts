/** Reports the events of a run: lines on stderr for people, JSON on stdout for programs, and the log. */
import type { AttemptEnd } from '../../model/fetch.js';
import type { CryptodlError } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import type { Announcement, Observer, RetryEvent } from '../../model/observer.js';
import { bytesText, countText, durationText } from '../../model/units.js';
import type { TaskOutcome } from '../../model/outcome.js';
import { printLines } from '../../text/printable.js';
import { logAttempt, logRetry, type Log } from './log.js';
import type { RunFollower } from './live-run.js';
import { RunProgress, progressMode } from './run-progress.js';
import { row, some } from './closing-block.js';
import type { Options } from '../../plan/options/flags.js';

interface ReporterOutput {
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

  constructor(
    private readonly options: Options<'json' | 'log-file' | 'log-level' | 'progress' | 'quiet'>,
    private readonly io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'environment'>,
    private readonly output: ReporterOutput,
  ) {
    const { quiet, json } = options;
    const { stderr: stream, clock } = io;
    const { job, isBeside = false } = output;
    this.#label = isBeside && job !== undefined ? `[${job}] ` : '';
    this.#title = isBeside || job === undefined ? [] : [`[${job}]`];
    const mode = progressMode(options, io, isBeside);
    this.#progress = new RunProgress({
      // Events on stdout are data, so `--quiet` does not end them.
      mode: quiet && !(json && mode === 'json') ? 'none' : mode,
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
    this.output.log.logger.info(line);
  }

  waiting(message: string): void {
    this.say([message]);
    this.event('waiting', { message });
    this.output.log.logger.info(message);
  }

  /** Prints a warning; with `--quiet` only before later `alarm` lines. `isKept`: false for an output that the user asked for and does not get. */
  warn(message: string, isKept = this.options.quiet): void {
    const line = `warning: ${message}`;
    if (!isKept) this.#print([line]);
    else if (this.#warnings.length < MOST_WARNINGS) this.#warnings.push(line);
    else this.#unkeptWarnings += 1;
    this.event('warning', { message });
    this.output.log.logger.warn(message);
  }

  event(event: string, fields: object): void {
    if (!this.options.json) return;
    this.#progress.clear();
    printLines(this.io.stdout, [{ event, job: this.output.job, ...fields }]);
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
    this.output.log.logger[kind === 'failed' ? 'error' : 'debug'](facts, kind);
  }

  retry(event: RetryEvent): void {
    const { clock } = this.io;
    const fields = logRetry(this.output.log, event);
    this.event('retry', fields);
    if (event.delayMs < LONG_WAIT_MS || clock.monotonic() - this.#lastWaitLineAt < LONG_WAIT_MS) return;
    this.#lastWaitLineAt = clock.monotonic();
    this.say([`waiting ${durationText(event.delayMs)}: ${event.error.message}`]);
  }

  attempt(attempt: AttemptEnd): void {
    logAttempt(this.output.log, attempt);
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
    this.output.log.close();
  }

  #print(lines: readonly string[]): void {
    this.#progress.clear();
    // In these lines a tab is part of a name, so it is escaped. Only tables for programs separate cells with tabs.
    const shown = lines.map((line) => line.replaceAll('\t', String.raw`\t`));
    printLines(this.io.stderr, [...this.#title.splice(0), ...shown.map((line) => `${this.#label}${line}`)]);
  }
}

/** The plan names at most this number of symbols. */
const MOST_NAMES = 3;

/** The first lines of a run: the selection, so that a user sees a misunderstanding, and the plan in numbers. */
function planBlock(announced: Announcement): string[] {
  const { what, symbols, range, idle = 'no series to continue', notes, totals, terms } = announced;
  const absent = Object.entries(totals.absentBy).flatMap(([reason, number]) => some(number, reason));
  const ofArchive = totals.fetch - totals.fetchRest;
  const size = [
    ...(ofArchive === 0 ? [] : [`${countText(ofArchive, 'object')}, ${bytesText(totals.fetchBytes)}`]),
    ...(totals.fetchRest === 0 ? [] : [`${countText(totals.fetchRest, 'period')} from REST`]),
  ].join(' and ');
  const fetch = `${size}, into ${countText(totals.partitions, 'partition')} of ${announced.formats}`;
  const parts = Object.entries(totals.fetchBy)
    .filter(([, { objects }]) => objects > 0)
    .flatMap(([name, of]) => row('', `${name}: ${countText(of.objects, 'object')}, ${bytesText(of.bytes)}`));
  const names = symbols.length > MOST_NAMES ? countText(totals.series, 'series') : symbols.join(', ');
  return [
    `${what} in ${announced.folder}: ${totals.series === 0 ? idle : `${names}, ${range}`}`,
    ...notes.map((note) => `  ${note}`),
    ...row('to fetch', totals.fetch === 0 ? 'nothing' : fetch),
    // One line per dataset, if there are several.
    ...(parts.length < 2 ? [] : parts),
    ...(totals.wider > 0
      ? row('whole', `${countText(totals.wider, 'month')}: the archive lacks daily objects of them`)
      : []),
    ...(totals.skip > 0 ? row('held', `${countText(totals.skip, 'object')}, unchanged`) : []),
    ...(totals.absent > 0 ? row('absent', absent.join(', ')) : []),
    ...row('terms', terms && `${terms.summary}: ${terms.notice}`),
  ];
}
