/** Several runs, one after the other or side by side: one report, one closing block, one exit code. */
import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { withSignals } from './look-up.js';
import type { LookUp } from './look-up.js';
import { grouped } from '../model/by-name.js';
import { Counters } from '../model/counters.js';
import { errnoOf } from '../model/errors.js';
import { exitCodeOfJobs } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import { SharedResources } from '../model/io.js';
import type { Signalled } from '../model/io.js';
import { jobsBlock } from './report/closing-block.js';
import { createFailureReport } from './report/failure-report.js';
import { openLogOf } from './report/log.js';
import type { Log } from './report/log.js';
import type { ReadReport } from './report/failure-report.js';
import { peakMemoryBytes } from './report/run-summary.js';
import { outcomesOf } from './report/tally.js';
import { cutWarning } from './select-failures.js';
import { endedBySignals, readSymbolFile } from '../plan/options/symbols.js';
import { absolutePath, shownPath } from '../text/printable.js';
import { CONTINUE, openReporter, runAndPrint } from './download.js';
import type { PrintedRun } from './download.js';
import type { Job } from './jobs.js';
import type { Mirrors } from './open-mirrors.js';
import { openMonitors } from './open-monitors.js';
import { refuseBadReport, sharedReport } from './open-report.js';
import type { ReportedRun } from './open-report.js';

/** Its options are those of the command as a whole. */
export interface JobsRun extends LookUp {
  readonly jobs: readonly Job[];
  /** The failure report that `retry` repeats. */
  readonly earlier?: Pick<ReadReport, 'path' | 'file' | 'cut'>;
}

/** It has only the job if this did not begin because of a signal. */
interface Ended extends Partial<PrintedRun> {
  readonly job: Job;
}

/** Runs jobs with their lakes on the local disk. */
export async function runLocally(request: JobsRun, lakes: Mirrors): Promise<ExitCode> {
  const jobs: Job[] = [];
  for (const job of request.jobs) jobs.push({ ...job, resolved: await lakes.resolve(job.resolved) });
  return runJobs({ ...request, jobs, resolved: await lakes.resolve(request.resolved) });
}

/** Runs all jobs. If a job ends early, the others still run; after a signal, no further job begins. */
async function runJobs(command: JobsRun): Promise<ExitCode> {
  const { jobs, earlier, io } = command;
  const { options } = command.resolved;
  return withSignals(command, async (request, { signal, signalled }) => {
    const { surroundings } = request;
    const { home } = surroundings;
    const shared = sharedReport(options, home, earlier?.file, io.clock.now());
    await refuseBadReport(options.failures, earlier?.file, dirname(shared.path));
    const report = createFailureReport(shared);
    const monitors = await openMonitors(options, { ...io, surroundings });
    const log = openLogOf(options, io);
    const most = options.dryRun ? 1 : options.jobs;
    const common = most > 1 ? new SharedResources() : undefined;
    const printed = new Map<Job, PrintedRun>();
    const runJob = async (job: Job): Promise<void> => {
      const { name, verb, resolved, failures } = job;
      const ofJob: Log = { logger: log.logger.child({ job: name }), close: () => undefined };
      const read = endedBySignals(io, readSymbolFile);
      const shareReport: ReportedRun['shareReport'] = (header) =>
        report.ofJob({ job: name, verb, options: header.options });
      const run = { ...request, resolved, read, verb, shareReport, failures, common };
      printed.set(job, await runAndPrint(run, { io, log: ofJob, signalled, monitors, job }));
    };
    try {
      const waiting = chainsOf(jobs, most, home).values();
      const work = async (): Promise<void> => {
        for (const chain of waiting) for (const job of chain) if (!signal.aborted) await runJob(job);
      };
      const settled = await Promise.allSettled(Array.from({ length: most }, work));
      for (const end of settled) if (end.status === 'rejected') throw end.reason;
      const ended = jobs.map((job) => ({ job, ...printed.get(job) }));
      const isWhole = ended.every(({ end }) => end !== undefined && end.ended === undefined);
      const reportPath = options.dryRun ? undefined : await report.close(isWhole);
      const elapsedMs = io.clock.monotonic() - io.startedAt;
      const warning = await monitors.close();
      return conclude(command, { ended, reportPath, elapsedMs, log, signal: signalled(), warning });
    } finally {
      await monitors.close();
      log.close();
    }
  });
}

/** The jobs of each lake, which has one run at a time. If jobs run one at a time: all jobs in their order. */
function chainsOf(jobs: readonly Job[], most: number, home: string | undefined): (readonly Job[])[] {
  if (most === 1) return [jobs];
  return [...grouped(jobs, ({ resolved }) => lakeAt(absolutePath(resolved.options.out, home))).values()];
}

/** Identifies a lake by its path without symbolic links. */
function lakeAt(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    // Other errors are reported when the lake is opened.
    return errnoOf(error) === 'ENOENT' ? join(lakeAt(dirname(path)), basename(path)) : path;
  }
}

interface End {
  readonly ended: readonly Ended[];
  readonly reportPath: string | undefined;
  readonly elapsedMs: number;
  readonly log: Log;
  readonly signal: Signalled;
  readonly warning: string | undefined;
}

function conclude(
  { resolved, earlier, io }: JobsRun,
  { ended, reportPath, elapsedMs, log, signal, warning }: End,
): ExitCode {
  const { options } = resolved;
  // The cut line of the report may be a failure that still has to be repeated.
  const cutCodes = earlier?.cut === undefined ? [] : [3 as const];
  const codes = [...ended.flatMap((one) => one.exitCode ?? []), ...cutCodes];
  const exitCode = exitCodeOfJobs(codes, signal);
  if (options.dryRun) return exitCode;
  const counts = new Counters(...ended.flatMap(({ end }) => end?.tally.all ?? []));
  const hasFailed = counts.of('outcome.failed') > 0;
  const shown = reportPath === undefined || !hasFailed ? undefined : shownPath(reportPath);
  const reporter = openReporter(resolved, io, log);
  const query = ended.findLast(({ end }) => end?.query !== undefined)?.end?.query;
  const next = signal !== undefined ? CONTINUE : shown === undefined && exitCode === 0 ? query : undefined;
  const lines = jobsBlock({ jobs: ended, elapsedMs, reportPath: shown, counts, next });
  if (earlier?.cut !== undefined) reporter.warn(cutWarning(earlier.path, earlier.cut));
  if (warning !== undefined) reporter.warnOfOutput(warning);
  reporter.end(lines, { error: undefined, isWell: exitCode === 0 });
  reporter.event('summary', {
    jobs: ended.map(({ job: { name, verb }, end, exitCode: ofJob = null }) => ({
      job: name,
      verb,
      outcomes: end?.tally.outcomes ?? null,
      exitCode: ofJob,
    })),
    outcomes: outcomesOf(counts),
    failures: hasFailed ? (reportPath ?? null) : null,
    elapsedMs: Math.round(elapsedMs),
    peakMemoryBytes: peakMemoryBytes(),
    exitCode,
  });
  return exitCode;
}
