/** `cryptodl vision`, `metrics`, `repair` and `retry`: a run with its output on the terminal. */
import { forEachItem } from './verb/items.js';
import { withSignals } from './verb/start-verb.js';
import type { VerbInput } from './verb/verb.js';
import { printError } from '../terminal/print-error.js';
import { writeData } from '../terminal/write-data.js';
import { periodText } from '../model/calendar.js';
import { toCryptodlError, type CryptodlError } from '../model/errors.js';
import { exitCode, type ExitCode } from '../model/exit-code.js';
import type { Io, Signalled } from '../model/io.js';
import { bytesToFetch, type Task } from '../model/task.js';
import type { RunFlag, VerbRequest } from '../plan/options/verb-request.js';
import { closingBlock } from './report/closing-block.js';
import { diagnosisLines, firstAttemptWarning } from './report/diagnosis.js';
import { openLogOf, type Log } from './report/log.js';
import { LiveRun } from './report/live-run.js';
import { Reporter } from './report/reporter.js';
import { summaryOf, type RunEnd, type RunSummary, type VerdictSummary } from './report/run-summary.js';
import type { PastFailures } from './failures/select-failures.js';
import { openNotices, type EndedRun } from './monitor/run-notices.js';
import { shellWord, shownPath, tabbed } from '../text/printable.js';
import type { JobEntry } from '../plan/options/jobs-file.js';
import { recordedOptions } from './failures/run-header.js';
import { openMonitors, type Monitors } from './monitor/open-monitors.js';
import { planOnly, startRun, type RunRequest } from './run.js';
import { judgeLake } from './verdict/judge-lake.js';

interface Download extends VerbInput<RunFlag> {
  readonly verb: RunRequest['verb'];
  readonly failures?: PastFailures | undefined;
}

/** Makes one run with its signals, log and output. Resolves with the exit code. */
export async function download(command: Download): Promise<ExitCode> {
  const { io, verb, failures } = command;
  const { options } = command.resolved;
  return withSignals(command, async (request, { signalled }) => {
    const monitors = await openMonitors(options, { ...io, surroundings: request.surroundings });
    const log = openLogOf(options, io);
    try {
      const run = { ...request, verb, failures };
      return (await runAndPrint(run, { io, log, signalled, monitors })).exitCode;
    } finally {
      await monitors.close();
    }
  });
}

interface RunOutput {
  readonly io: Io;
  readonly log: Log;
  readonly signalled: () => Signalled;
  /** Set for one of several jobs: a next step without failures is printed once, for the command as a whole. */
  readonly job?: Pick<JobEntry, 'name' | 'explain'>;
  /** The outputs of the command for other programs. */
  readonly monitors?: Monitors;
}

export interface PrintedRun {
  readonly exitCode: ExitCode;
  /** Undefined for `--dry-run`, and if the run could not begin. */
  readonly end?: RunEnd;
}

/** Makes one run and prints its lines. Errors are printed, not thrown. With `common`, other jobs print at the same time. */
export async function runAndPrint(
  { resolved, ...given }: Omit<RunRequest, 'observer'>,
  output: RunOutput,
): Promise<PrintedRun> {
  const { io, log, signalled, job, monitors } = output;
  const { options } = resolved;
  const reporter = new Reporter(options, io, { log, job: job?.name, isBeside: given.common !== undefined });
  const request = { ...given, resolved, observer: reporter };
  const live = new LiveRun(request.clock, job === undefined ? io.startedAtMs : undefined);
  let endNotices: ReturnType<typeof openNotices> | undefined;
  const onSignal = (): void => reporter.ending(ENDING);
  request.signal.addEventListener('abort', onSignal, { once: true });
  const tellEnd = async (run: EndedRun): Promise<void> => {
    const verdict = await verdictAfter(request);
    await endNotices?.({ ...run, verdict });
    live.ended(run.exitCode, verdict);
    // The command ends with its only run.
    if (job !== undefined) return;
    const warning = await monitors?.close();
    if (warning !== undefined) reporter.warn(warning, false);
  };
  try {
    const named = { verb: request.verb, job: job?.name, options: recordedOptions(request) };
    await monitors?.follow(named, { ...request, live });
    if (options.dryRun) {
      await printPlan({ ...request, live }, io, job?.name);
      return { exitCode: 0 };
    }
    endNotices = openNotices({ ...request, options, job: job?.name });
    live.follow(reporter.follower);
    const run = startRun({ ...request, job: job?.name, signalled, live });
    const end = await forEachItem(run, (outcome) => reporter.outcome(outcome));
    const summary = summaryOf(end, signalled());
    await tellEnd({ exitCode: summary.exitCode, summary });
    conclude(request, output, end, summary);
    return { exitCode: summary.exitCode, end };
  } catch (thrown) {
    const known = toCryptodlError(thrown);
    const error = job === undefined ? known : job.explain(known);
    const signal = signalled();
    reporter.ending();
    const code = exitCode({ signal, ended: error.code });
    await tellEnd({ exitCode: code, error: error.code });
    refuse(request, output, error, code);
    return { exitCode: code };
  } finally {
    request.signal.removeEventListener('abort', onSignal);
    reporter.close();
  }
}

/** `--dry-run`: prints `fetch|skip|absent`, bytes, key and job (if any) of each object on stdout, or a `planned` event for each with `--json`. */
async function printPlan(
  request: RunRequest & { readonly live: LiveRun },
  io: Io,
  job: string | undefined,
): Promise<void> {
  const lineOf = request.resolved.options.json ? asEvent : asLine;
  for await (const { tasks } of planOnly(request)) {
    const lines = tasks.map((task) => lineOf(task, job));
    if (!(await writeData(io, lines))) break;
  }
  request.live.ended(0);
}

const asLine = ({ action, object }: Task, job: string | undefined): string =>
  tabbed([action.kind, bytesToFetch(object) ?? 0, object.key, ...(job === undefined ? [] : [job])]);

function asEvent({ series, action, object }: Task, job: string | undefined): object {
  const { kind, ...why } = action;
  const { key, period } = object;
  return {
    event: 'planned',
    job,
    action: kind,
    ...why,
    ...series,
    cadence: period.cadence,
    period: periodText(period),
    bytes: bytesToFetch(object),
    key,
  };
}

/** Replaces the live line after the first signal. */
const ENDING = 'ending: files that are written now are finished first; Ctrl-C ends at once';

function conclude(
  { resolved, observer: reporter }: RunRequest & { readonly observer: Reporter },
  { job, signalled }: RunOutput,
  end: RunEnd,
  summary: RunSummary,
): void {
  const { exitCode: code } = summary;
  const reportPath = end.reportPath && shownPath(end.reportPath);
  const trouble = { strict: end.status.strict, nothingNew: code === 5 };
  const next =
    signalled() !== undefined
      ? CONTINUE
      : reportPath === undefined
        ? trouble.nothingNew
          ? LATER
          : end.query
        : nextStep(end.tally, reportPath);
  const warning = firstAttemptWarning(end.network);
  if (warning !== undefined) reporter.warn(warning);
  const { network, times } = end;
  const elapsedMs = times.elapsedMs - times.pausedMs;
  const diagnosis = diagnosisLines({ network, elapsedMs });
  const isNextShown = job === undefined || reportPath !== undefined;
  const closing = { ...end, diagnosis, reportPath, trouble, next: isNextShown ? next : undefined };
  const lines = closingBlock(closing, resolved.options.quiet);
  reporter.end(lines, { error: end.ended, isWell: code === 0 && end.tally.of('shorter') === 0 });
  for (const alert of end.alerts) reporter.event('alert', alert);
  reporter.event('summary', summary);
}

export const CONTINUE = 'run the same command again to continue';

/** The next step after exit code 5: nothing new was written. */
const LATER =
  'the same command later; --wait-for-publication waits until the archive has the selected periods';

/** The next command after a run with failures. `reportPath`: the path as it is shown to the user. */
export function nextStep(failed: Pick<RunEnd['tally'], 'of'>, reportPath: string): string {
  const retry = `cryptodl retry ${shellWord(reportPath)}`;
  const stale = failed.of('failedBy.sidecar-stale');
  const mayCome = failed.of('failedRetryable') + failed.of('waitedTooLong');
  if (mayCome === 0 && failed.of('failedPermanent') > 0)
    return `run the same command again later: a retry now fails the same way; ${shellWord(reportPath)} names the objects`;
  return stale > 0 && stale === mayCome ? `${retry} --stale-checksum warn` : retry;
}

function refuse(
  { observer: reporter }: { readonly observer: Reporter },
  { io, signalled }: RunOutput,
  known: CryptodlError,
  code: ExitCode,
): void {
  const signal = signalled();
  reporter.alarm(signal === undefined ? [] : [`cryptodl: ended by ${signal} before the work began`]);
  if (signal === undefined) printError(known, io);
  reporter.event('summary', {
    outcomes: { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 0 },
    error: { code: known.code, message: known.message },
    exitCode: code,
  });
}

/** Undefined if no output shows it, for a lake without orders, and after a warning for one that cannot be read. */
async function verdictAfter(request: VerbRequest<RunFlag>): Promise<VerdictSummary | undefined> {
  const { ping, alertWebhook, prometheusPort, prometheusTextfile, dryRun } = request.resolved.options;
  // It takes a reading of all manifests.
  const outputs = [ping, alertWebhook, prometheusPort, prometheusTextfile];
  if (dryRun || outputs.every((one) => one === undefined)) return undefined;
  try {
    // Also after a signal: the message about the run needs it.
    const judged = await judgeLake({ ...request, signal: new AbortController().signal });
    return judged?.summary;
  } catch (error) {
    request.observer.warn(`the lake has no verdict: ${toCryptodlError(error).message}`);
    return undefined;
  }
}
