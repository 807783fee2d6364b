/** `cryptodl vision` and `cryptodl retry`: a run, told on the terminal. */
import { systemClock } from '../clock.js';
import { toCryptodlError } from '../errors.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { surroundingsOf } from '../options/surroundings.js';
import { closingBlock } from '../report/closing-block.js';
import { openLog } from '../report/log.js';
import { Reporter } from '../report/reporter.js';
import type { RunEnd } from '../run/conclude-run.js';
import { summaryOf } from '../run/conclude-run.js';
import { planOnly, startRun } from '../run/run.js';
import type { RunRequest } from '../run/run.js';
import type { PastFailures } from '../run/want-failures.js';
import { shownPath } from '../shown-path.js';
import { complain } from './complain.js';
import type { Typed } from './complain.js';
import { printPlan } from './print-plan.js';
import { readLists } from './read-lists.js';
import { watchSignals } from './watch-signals.js';
import type { Signalled } from './watch-signals.js';

export interface Download {
  readonly resolved: Resolved;
  readonly io: Io;
  readonly typed: Typed;
  readonly verb: RunRequest['verb'];
  readonly failures?: PastFailures;
}

export async function download({ resolved, io, typed, verb, failures }: Download): Promise<ExitCode> {
  const { options } = resolved;
  const reporter = openReporter(options, io);
  const signals = watchSignals(io);
  const request: RunRequest = {
    resolved,
    surroundings: surroundingsOf(io.environment),
    read: readLists(io),
    observer: reporter,
    clock: systemClock,
    signal: signals.signal,
    verb,
    ...(failures === undefined ? {} : { failures }),
  };
  try {
    if (options['dry-run'] === true) {
      await printPlan(planOnly(request), io, options.json === true);
      return 0;
    }
    const run = startRun(request);
    for await (const outcome of run) reporter.outcome(outcome);
    return conclude(reporter, await run.end(), signals.signalled());
  } catch (error) {
    return refuse(reporter, error, typed, signals.signalled());
  } finally {
    signals.release();
    reporter.close();
  }
}

function conclude(reporter: Reporter, end: RunEnd, signal: Signalled): ExitCode {
  const summary = summaryOf(end, signal);
  const reportPath = end.reportPath === undefined ? undefined : shownPath(end.reportPath);
  const next = reportPath === undefined ? end.query : `cryptodl retry ${reportPath}`;
  reporter.end(closingBlock({ ...end, reportPath, next }), {
    error: end.ended,
    isWell: summary.exitCode === 0,
  });
  reporter.event('summary', summary);
  return summary.exitCode;
}

/** Nothing was begun. */
function refuse(reporter: Reporter, error: unknown, typed: Typed, signal: Signalled): ExitCode {
  const known = toCryptodlError(error);
  if (signal !== undefined) reporter.alarm([`cryptodl: ended by ${signal} before the work began`]);
  const code = signal === undefined ? complain(known, typed) : signal === 'SIGINT' ? 130 : 143;
  reporter.event('summary', {
    outcomes: { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 0 },
    error: { code: known.code, message: known.message },
    exitCode: code,
  });
  return code;
}

function openReporter(options: Options, io: Io): Reporter {
  const toStderr = options['log-level'] !== 'info';
  const log = openLog({ file: options['log-file'], level: options['log-level'], toStderr });
  const isTerminal = io.stderr.isTTY === true && io.environment['TERM'] !== 'dumb';
  // A bar is drawn over and over; nothing else may write to its line.
  const isAlone = options.json !== true && (options['log-file'] !== undefined || !toStderr);
  const wanted = options.progress === 'auto' ? (isAlone ? 'bar' : 'plain') : options.progress;
  return new Reporter({
    stdout: io.stdout,
    stderr: io.stderr,
    clock: systemClock,
    json: options.json === true,
    quiet: options.quiet === true,
    progress: wanted === 'bar' && !isTerminal ? 'plain' : wanted,
    log,
  });
}
