/** Runs a command line: arguments in, exit code out. `run` may be called several times in one process. */
import type { Command, OptionsCommand } from './run/look-up.js';
import { parseCommandLine } from './cli/program.js';
import { toCryptodlError } from './model/errors.js';
import type { ExitCode } from './model/exit-code.js';
import type { Io } from './model/io.js';
import type { Verb } from './plan/options/flag-spec.js';
import type { Invocation, OptionSources, RawLayer, Resolved } from './plan/options/resolve.js';
import type { RunVerb } from './plan/select/selection.js';
import type { Source } from './exchange/source.js';
import { printLines } from './text/printable.js';
import type { Job } from './run/jobs.js';
import type { JobsRun } from './run/run-jobs.js';
import type { Mirrors } from './run/open-mirrors.js';

/** Reads the facts of an exchange. Only the verbs that need them call it, because it takes longer than the whole of `--help`. */
export type LoadSource = () => Promise<Source>;

const loadDefault: LoadSource = async () => {
  const { loadBinance } = await import('./exchange/binance/binance.js');
  return loadBinance();
};

/** Resolves with the exit code. Errors are printed on stderr. */
export async function run(
  argv: readonly string[],
  io: Io,
  loadSource: LoadSource = loadDefault,
): Promise<ExitCode> {
  return printingErrors(io, undefined, async () => {
    if (argv[0] === '__complete') return (await import('./cli/completion.js')).complete(argv.slice(1), io);
    const invocation = parseCommandLine(argv, io);
    if (invocation === undefined) return 0;
    const { layersOf, warnOfVariables } = await import('./plan/options/option-layers.js');
    warnOfVariables(io);
    const layers = await layersOf(invocation, io);
    return COMMANDS[invocation.verb]({ ...invocation, layers, io, loadSource });
  });
}

async function printingErrors(
  io: Io,
  sources: OptionSources | undefined,
  work: () => Promise<ExitCode>,
): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    const [{ printError }, { nameOptions }] = await Promise.all([
      import('./terminal/print-error.js'),
      import('./plan/options/flags.js'),
    ]);
    const inNames = sources && ((message: string) => nameOptions(message, sources.nameOf));
    return printError(toCryptodlError(error), io, inNames);
  }
}

/** A command line with the sources of its options. */
interface Started extends Invocation {
  readonly layers: readonly RawLayer[];
  readonly io: Io;
  readonly loadSource: LoadSource;
}
type Start = (started: Started) => Promise<ExitCode>;

/** Each verb loads only its own modules. */
const COMMANDS: Readonly<Record<Verb, Start>> = {
  vision: startDownload('vision'),
  metrics: startDownload('metrics'),
  repair: startDownload('repair'),
  run: runFile,
  retry,
  schedule: withSource(async (command) =>
    (await import('./verbs/schedule/schedule.js')).schedule(command, parseCommandLine),
  ),
  remove: withSource(async (command) => (await import('./verbs/remove/remove.js')).remove(command)),
  verify: withSource(async (command) => (await import('./verbs/verify/verify.js')).verify(command)),
  list: withSource(async (command) => (await import('./verbs/list/list.js')).list(command)),
  schema: withSource(async (command) => (await import('./verbs/schema/schema.js')).schema(command)),
  audit: withSource(async (command) => (await import('./verbs/audit/audit.js')).audit(command)),
  sql: withSource(async (command) => (await import('./verbs/sql/sql.js')).sql(command)),
  check: withSource(async (command) => (await import('./verbs/check/check.js')).check(command)),
  coverage: withSource(async (command) => (await import('./verbs/coverage/coverage.js')).coverage(command)),
  runs: withOptions(async (command) => (await import('./verbs/runs/runs.js')).runs(command)),
  report: withSource(async (command) => (await import('./verbs/report/report.js')).report(command)),
  plot: withSource(async (command) => (await import('./verbs/plot/plot.js')).plot(command)),
  bars: withSource(async (command) => (await import('./verbs/bars/bars.js')).bars(command)),
  export: withSource(async (command) => (await import('./verbs/export/export.js')).exportFor(command)),
  universe: withSource(async (command) => (await import('./verbs/universe/universe.js')).universe(command)),
  doctor: withSource(async (command) => (await import('./verbs/doctor/doctor.js')).doctor(command)),
  serve: withOptions(async ({ operand = '', resolved, io }) =>
    (await import('./verbs/serve/serve.js')).serve(operand, resolved.options, io),
  ),
  enqueue: withSource(async (command) => (await import('./verbs/queue/enqueue.js')).enqueue(command)),
  worker: withSource(async (command) => (await import('./verbs/queue/worker.js')).worker(command)),
  status: withOptions(async (command) => (await import('./verbs/queue/status.js')).status(command)),
  completion: withOptions(async (command) => (await import('./cli/completion.js')).completion(command)),
  man: withOptions(async ({ io }) => (await import('./cli/help.js')).man(io)),
};

/** A verb that needs the facts of an exchange. */
function withSource(act: (command: Command) => Promise<ExitCode>): Start {
  return async ({ loadSource, ...started }) => {
    const source = await loadSource();
    return withResolved({ ...started, source }, (resolved) => act({ ...started, source, resolved }));
  };
}

/** A verb that needs no facts of an exchange. */
function withOptions(act: (command: OptionsCommand) => Promise<ExitCode>): Start {
  return (started) => withResolved(started, (resolved) => act({ ...started, resolved }));
}

/** Verbs whose jobs open the lakes. */
const OF_QUEUE: ReadonlySet<Verb> = new Set(['enqueue', 'worker', 'status']);

/** Resolves the options. `--print-options` prints them, and the verb does not run. */
async function withResolved(
  { verb, layers, source, io }: Omit<Started, 'loadSource'> & { readonly source?: Source },
  act: (resolved: Resolved) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { optionSources, resolveOptions } = await import('./plan/options/resolve.js');
  // Errors name an option as it was given: as a flag, an environment variable or a key of a file.
  const sources = optionSources(verb, layers);
  return withLakes(verb, { io, sources }, async (lakes) => {
    const resolved = resolveOptions(verb, layers, source);
    if (resolved.options.printOptions) return printOptions(verb, resolved, io);
    await removeTempFiles(resolved, io);
    return act(OF_QUEUE.has(verb) ? resolved : await lakes.resolve(resolved));
  });
}

/** Removes what killed commands have left in the folder for temporary files. */
async function removeTempFiles({ options }: Resolved, { environment }: Io): Promise<void> {
  const { removeLeftovers, tempFolderOf } = await import('./files/temp-files.js');
  const { homeOf } = await import('./files/environment.js');
  await removeLeftovers(tempFolderOf(options.tempDir, homeOf(environment)));
}

/** Calls `act`, and prints its errors while the mirrors are open, because they may name files in them. */
async function withLakes(
  verb: Verb,
  { io, sources }: { readonly io: Io; readonly sources?: OptionSources },
  act: (lakes: Mirrors) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { callerOf, Mirrors: Opened } = await import('./run/open-mirrors.js');
  const lakes = new Opened(verb, () => callerOf(io));
  try {
    return await printingErrors(io, sources, () => act(lakes));
  } finally {
    await lakes.close();
  }
}

function startDownload(verb: RunVerb): Start {
  return withSource(async (command) => {
    const { download } = await import('./run/download.js');
    return download({ ...command, verb });
  });
}

async function printOptions(verb: Verb, resolved: Resolved, io: Io): Promise<0> {
  const { optionLines } = await import('./plan/options/option-layers.js');
  printLines(io.stdout, optionLines(verb, resolved));
  return 0;
}

async function runFile({ io, loadSource, ...invocation }: Started): Promise<ExitCode> {
  const source = await loadSource();
  const { readJobs } = await import('./run/jobs.js');
  const { resolved, jobs } = await readJobs(invocation, io, source);
  if (resolved.options.printOptions) {
    for (const job of jobs) {
      printLines(io.stdout, [`[${job.name}]`]);
      await printOptions(job.verb, job.resolved, io);
    }
    return 0;
  }
  await removeTempFiles(resolved, io);
  return withLakes('run', { io, sources: resolved }, (lakes) =>
    runLocally({ source, resolved, jobs, io }, lakes),
  );
}

/** Runs jobs with their lakes on the local disk. */
async function runLocally(request: JobsRun, lakes: Mirrors): Promise<ExitCode> {
  const { runJobs } = await import('./run/run-jobs.js');
  const jobs: Job[] = [];
  for (const job of request.jobs) jobs.push({ ...job, resolved: await lakes.resolve(job.resolved) });
  return runJobs({ ...request, jobs, resolved: await lakes.resolve(request.resolved) });
}

/** Downloads the failures of a report again, by default of the newest one; of a report of jobs, each job with its own options. */
async function retry({ loadSource, ...started }: Started): Promise<ExitCode> {
  const { operand: path = '', layers, io } = started;
  const source = await loadSource();
  if (path === '' && layers.some(({ values }) => values.redis !== undefined))
    return withResolved({ ...started, source }, async ({ options }) =>
      (await import('./verbs/queue/retry-jobs.js')).retryJobs(options, io),
    );
  const { resolveOptions } = await import('./plan/options/resolve.js');
  const { lastReportOf } = await import('./run/select-failures.js');
  const { pastJobs, pastRun, readReport } = await import('./run/past-runs.js');
  return withLakes('retry', { io }, async (lakes) => {
    const given = resolveOptions('retry', layers, source);
    const local =
      path === ''
        ? await lastReportOf((await lakes.resolve(given)).options.out, io.environment)
        : await lakes.fileAt(path, given.options);
    const report = await readReport(local, source);
    const { resolved, verb, failures } = pastRun(report, layers, source);
    if (resolved.options.printOptions) return printOptions('retry', resolved, io);
    await removeTempFiles(resolved, io);
    const jobs = pastJobs(report, layers, source);
    return printingErrors(io, resolved, async () => {
      if (report.jobs.length > 0) return runLocally({ source, resolved, jobs, earlier: report, io }, lakes);
      const { download } = await import('./run/download.js');
      const onDisk = await lakes.resolve(resolved);
      return download({ source, resolved: onDisk, io, verb, failures });
    });
  });
}
