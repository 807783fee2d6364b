/** `cryptodl run FILE`: the jobs of a file. */
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { readJobs, type Job } from '../../run/jobs.js';
import { printOptions, removeTempFiles, withLakes, withSignals } from '../../run/verb/start-verb.js';
import type { Started, VerbInput } from '../../run/verb/verb.js';
import { printLines, absolutePath } from '../../text/printable.js';
import { join, parse } from 'node:path';
import { grouped } from '../../model/by-name.js';
import { Counters } from '../../model/counters.js';
import type { Signalled } from '../../model/io.js';
import { SharedResources } from '../../model/shared-resources.js';
import { jobsBlock } from '../../run/report/closing-block.js';
import { openLogOf, type Log } from '../../run/report/log.js';
import { peakMemoryBytes } from '../../run/report/run-summary.js';
import { outcomesOf } from '../../run/report/count-outcome.js';
import type { Resolved } from '../../plan/options/resolve.js';
import { Reporter } from '../../run/report/reporter.js';
import { CONTINUE, runAndPrint, type PrintedRun } from '../../run/download.js';
import type { RunFlag } from '../../plan/options/verb-request.js';
import type { MirrorFlag } from '../../run/verb/make-mirror.js';
import type { Mirrors } from '../../run/verb/open-mirrors.js';
import { openMonitors } from '../../run/monitor/open-monitors.js';

export async function runFile(started: Started): Promise<ExitCode> {
  const { io, verb, verbs } = started;
  const exchange = await started.loadExchange();
  const { resolved, jobs } = await readJobs(started, started, exchange);
  if (resolved.options.printOptions) {
    for (const job of jobs) {
      printLines(io.stdout, [`[${job.name}]`]);
      await printOptions(verbs[job.verb], job.resolved, io);
    }
    return 0;
  }
  await removeTempFiles(resolved, io);
  return withLakes(verb, io, (lakes) => runLocally({ exchange, resolved, jobs, io }, lakes));
}

// Several runs, one after the other or side by side: one closing block, one exit code.

/** Its options are those of the command as a whole. */
interface JobsRun extends VerbInput<RunFlag | MirrorFlag | 'jobs'> {
  readonly jobs: readonly Job[];
}

/** Runs jobs with their lakes on the local disk. */
async function runLocally(request: JobsRun, lakes: Mirrors): Promise<ExitCode> {
  const jobs: Job[] = [];
  for (const job of request.jobs) jobs.push({ ...job, resolved: await lakes.resolve(withOwnReport(job)) });
  return runJobs({ ...request, jobs, resolved: await lakes.resolve(request.resolved) });
}

/** Runs all jobs. If a job ends early, the others still run; after a signal, no further job begins. */
async function runJobs(command: JobsRun): Promise<ExitCode> {
  const { jobs, io } = command;
  const { options } = command.resolved;
  return withSignals(command, async (request, { signal, signalled }) => {
    const { surroundings } = request;
    const { home } = surroundings;
    const monitors = await openMonitors(options, { ...io, surroundings });
    const log = openLogOf(options, io);
    const most = options.dryRun ? 1 : options.jobs;
    const common = most > 1 ? new SharedResources() : undefined;
    const printed = new Map<Job, PrintedRun>();
    const runJob = async (job: Job): Promise<void> => {
      const { name, verb, resolved } = job;
      const ofJob: Log = { logger: log.logger.child({ job: name }), close: () => undefined };
      const run = { ...request, resolved, verb, common };
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
      const elapsedMs = io.clock.monotonic() - io.startedAtMs;
      const warning = await monitors.close();
      return conclude(command, { ended, elapsedMs, log, signal: signalled(), warning });
    } finally {
      await monitors.close();
      log.close();
    }
  });
}

/** The options of a job with a report of its own: `--failures failed.jsonl` becomes `failed-NAME.jsonl`. */
function withOwnReport({ name, resolved }: Job): Resolved {
  const { failures } = resolved.options;
  if (failures === undefined) return resolved;
  const { dir, name: base, ext } = parse(failures);
  return { ...resolved, options: { ...resolved.options, failures: join(dir, `${base}-${name}${ext}`) } };
}

/** The jobs of each lake, which has one run at a time. If jobs run one at a time: all jobs in their order. */
function chainsOf(jobs: readonly Job[], most: number, home: string | undefined): (readonly Job[])[] {
  if (most === 1) return [jobs];
  return [...grouped(jobs, ({ resolved }) => absolutePath(resolved.options.out, home)).values()];
}

interface End {
  /** Only a job, if it did not begin because of a signal. */
  readonly ended: readonly (Partial<PrintedRun> & { readonly job: Job })[];
  readonly elapsedMs: number;
  readonly log: Log;
  readonly signal: Signalled;
  readonly warning: string | undefined;
}

function conclude({ resolved, io }: JobsRun, { ended, elapsedMs, log, signal, warning }: End): ExitCode {
  const { options } = resolved;
  const code = exitCode({ signal, parts: ended.flatMap((one) => one.exitCode ?? []) });
  if (options.dryRun) return code;
  const counts = new Counters(...ended.flatMap(({ end }) => end?.tally.all ?? []));
  const reports = ended.flatMap(({ end }) => end?.reportPath ?? []);
  const reporter = new Reporter(options, io, { log });
  const query = ended.findLast(({ end }) => end?.query !== undefined)?.end?.query;
  const next = signal !== undefined ? CONTINUE : code === 0 ? query : undefined;
  const lines = jobsBlock({ jobs: ended, elapsedMs, next });
  if (warning !== undefined) reporter.warn(warning, false);
  reporter.end(lines, { error: undefined, isWell: code === 0 });
  reporter.event('summary', {
    jobs: ended.map(({ job: { name, verb }, end, exitCode: ofJob = null }) => ({
      job: name,
      verb,
      outcomes: end?.tally.outcomes ?? null,
      exitCode: ofJob,
    })),
    outcomes: outcomesOf(counts),
    failures: reports.length === 0 ? null : reports,
    elapsedMs: Math.round(elapsedMs),
    peakMemoryBytes: peakMemoryBytes(),
    exitCode: code,
  });
  return code;
}
