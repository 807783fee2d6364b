/** Runs a command line: arguments in, exit code out. `run` may be called several times in one process. */
import type { Typed } from './cli/print-error.js';
import { parseCommandLine } from './cli/program.js';
import type { Invocation } from './cli/program.js';
import { toCryptodlError } from './model/errors.js';
import type { ExitCode } from './model/exit-code.js';
import type { Io } from './model/io.js';
import type { Verb } from './options/flag-spec.js';
import type { RawLayer, Resolved } from './options/resolve.js';
import type { RunVerb } from './select/selection.js';
import type { Source } from './source/source.js';
import { printLines } from './text/printable.js';
import type { Job } from './download/jobs.js';
import type { ReadReport } from './report/read-failure-report.js';
import type { Mirrors } from './mirror/open-mirrors.js';

/** Reads the facts of an exchange. Only the verbs that need them call it, because it takes longer than the whole of `--help`. */
export type LoadSource = () => Promise<Source>;

const loadDefault: LoadSource = async () => {
  const { loadBinance } = await import('./source/binance/binance.js');
  return loadBinance();
};

/** Resolves with the exit code. Errors are printed on stderr. */
export async function run(
  argv: readonly string[],
  io: Io,
  loadSource: LoadSource = loadDefault,
): Promise<ExitCode> {
  const typed: Typed = {
    argv,
    io,
    refusalOf: async (words, without) => {
      const { refusalOf } = await import('./cli/check-line.js');
      return refusalOf(words, { io, loadSource, without });
    },
  };
  return printingErrors(typed, async () => {
    if (argv[0] === '__complete') return (await import('./cli/completion.js')).complete(argv.slice(1), io);
    const invocation = parseCommandLine(argv, io);
    if (invocation === undefined) return 0;
    const { warnOfVariables } = await import('./cli/option-layers.js');
    warnOfVariables(io);
    return COMMANDS[invocation.verb](invocation, typed, loadSource);
  });
}

async function printingErrors(typed: Typed, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    const { printError } = await import('./cli/print-error.js');
    return printError(toCryptodlError(error), typed);
  }
}

type Start = (invocation: Invocation, given: Typed, loadSource: LoadSource) => Promise<ExitCode>;

/** Each verb loads only its own modules. */
const COMMANDS: Readonly<Record<Verb, Start>> = {
  vision: startDownload('vision'),
  metrics: startDownload('metrics'),
  repair: startDownload('repair'),
  run: runFile,
  retry,
  schedule: withSource(async (command, { behind }) => {
    const { schedule } = await import('./schedule/schedule.js');
    return schedule(behind, command.resolved.options, command.typed, command.source);
  }),
  verify: withSource(async (command) => (await import('./verify/verify.js')).verify(command)),
  list: withSource(async (command, { operand }) =>
    (await import('./catalog/list.js')).list(operand, command),
  ),
  schema: withSource(async (command, { operand }) =>
    (await import('./catalog/schema.js')).schema(operand, command),
  ),
  audit: withSource(async (command) => (await import('./audit/audit.js')).audit(command)),
  sql: withSource(async (command, { operand }) => (await import('./query/sql.js')).sql(operand, command)),
  coverage: withSource(async (command) => (await import('./coverage/coverage.js')).coverage(command)),
  runs: withOptions(async ({ options }, _, io) => (await import('./runs/runs.js')).runs(options, io)),
  report: withSource(async (command) => (await import('./page/report.js')).report(command)),
  plot: withSource(async (command, { operand }) => (await import('./plot/plot.js')).plot(operand, command)),
  bars: withSource(async (command, { operand = '' }) =>
    (await import('./bars/bars.js')).bars(operand, command),
  ),
  export: withSource(async (command, { operand }) =>
    (await import('./export/export.js')).exportFor(operand, command),
  ),
  universe: withSource(async (command) => (await import('./universe/universe.js')).universe(command)),
  doctor: withSource(async (command) => (await import('./doctor/doctor.js')).doctor(command)),
  serve: withOptions(async ({ options }, { operand = '' }, io) =>
    (await import('./serve/serve.js')).serve(operand, options, io),
  ),
  enqueue: withSource(async (command, { operand }) =>
    (await import('./workers/enqueue.js')).enqueue(operand, command),
  ),
  worker: withSource(async (command) => (await import('./workers/worker.js')).worker(command)),
  status: withOptions(async ({ options }, _, io) =>
    (await import('./workers/status.js')).status(options, io),
  ),
  completion: withOptions(async (_, { operand }, io) =>
    (await import('./cli/completion.js')).completion(operand, io),
  ),
  man: withOptions(async (_, __, io) => (await import('./cli/man.js')).man(io)),
};

/** A verb with its options and its exchange. */
interface Command {
  readonly source: Source;
  readonly resolved: Resolved;
  /** The sources of the options, in order of precedence. */
  readonly layers: readonly RawLayer[];
  readonly io: Io;
  readonly typed: Typed;
}

/** A verb that needs the facts of an exchange. */
function withSource(act: (command: Command, invocation: Invocation) => Promise<ExitCode>): Start {
  return async (invocation, given, loadSource) => {
    const { io } = given;
    const layers = await layersOf(invocation, io);
    const source = await loadSource();
    return withResolved(invocation, { layers, source }, given, (resolved, typed) =>
      act({ source, resolved, layers, io, typed }, invocation),
    );
  };
}

/** A verb that needs no facts of an exchange. */
function withOptions(act: (resolved: Resolved, invocation: Invocation, io: Io) => Promise<ExitCode>): Start {
  return async (invocation, given) => {
    const { io } = given;
    const layers = await layersOf(invocation, io);
    return withResolved(invocation, { layers }, given, (resolved) => act(resolved, invocation, io));
  };
}

/** Resolves the options. `--print-options` prints them, and the verb does not run. */
async function withResolved(
  { verb }: Invocation,
  { layers, source }: { readonly layers: readonly RawLayer[]; readonly source?: Source },
  given: Typed,
  act: (resolved: Resolved, typed: Typed) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { optionSources, resolveOptions } = await import('./options/resolve.js');
  // Errors name an option as it was given: as a flag, an environment variable or a key of a file.
  const typed = { ...given, sources: optionSources(verb, layers) };
  return printingErrors(typed, async () => {
    const resolved = resolveOptions(verb, layers, source);
    if (resolved.options.printOptions) return printOptions(verb, resolved, given.io);
    const { options } = resolved;
    return withMirrors(verb, typed, OF_QUEUE.has(verb) ? [] : [options.out], async (mirrors) =>
      act(await mirrors.resolve(resolved), typed),
    );
  });
}

/** Verbs whose jobs open the lakes. */
const OF_QUEUE: ReadonlySet<Verb> = new Set(['enqueue', 'worker', 'status']);

type LocalLakes = Pick<Mirrors, 'fileAt' | 'resolve'>;

const NO_MIRRORS: LocalLakes = {
  resolve: (resolved) => Promise.resolve(resolved),
  fileAt: (path) => Promise.resolve(path),
};

/** Calls `act` with the mirrors of lakes in buckets, if one of these paths is the address of a bucket. */
async function withMirrors(
  verb: Verb,
  typed: Typed,
  paths: readonly string[],
  act: (mirrors: LocalLakes) => Promise<ExitCode>,
): Promise<ExitCode> {
  if (!paths.some((path) => /^s3:/i.test(path))) return act(NO_MIRRORS);
  const { callerOf, Mirrors } = await import('./mirror/open-mirrors.js');
  const mirrors = new Mirrors(verb, callerOf(typed.io));
  try {
    // The errors are printed while the mirrors are open, because they may name files in them.
    return await printingErrors(typed, () => act(mirrors));
  } finally {
    await mirrors.close();
  }
}

async function layersOf(invocation: Invocation, io: Io): Promise<RawLayer[]> {
  return (await import('./cli/option-layers.js')).layersOf(invocation, io);
}

function startDownload(verb: RunVerb): Start {
  return withSource(async (command) => {
    const { download } = await import('./download/download.js');
    return download({ ...command, verb });
  });
}

async function printOptions(verb: Verb, resolved: Resolved, io: Io): Promise<ExitCode> {
  printLines(io.stdout, await optionLines(verb, resolved));
  return 0;
}

async function optionLines(verb: Verb, resolved: Resolved): Promise<string[]> {
  const layers = await import('./cli/option-layers.js');
  return layers.optionLines(verb, resolved);
}

async function runFile(invocation: Invocation, given: Typed, loadSource: LoadSource): Promise<ExitCode> {
  const { io } = given;
  const source = await loadSource();
  const { readJobs } = await import('./download/jobs.js');
  const { resolved, jobs } = await readJobs(invocation, io, source);
  if (resolved.options.printOptions) {
    for (const job of jobs)
      printLines(io.stdout, [`[${job.name}]`, ...(await optionLines(job.verb, job.resolved))]);
    return 0;
  }
  const { runJobs } = await import('./download/run-jobs.js');
  const typed = { ...given, sources: resolved };
  return printingErrors(typed, () =>
    withMirrors('run', typed, lakesOf(resolved, jobs), async (mirrors) =>
      runJobs({ source, ...(await localJobs(mirrors, resolved, jobs)), io, typed }),
    ),
  );
}

function lakesOf(resolved: Resolved, jobs: readonly Job[]): string[] {
  return [resolved, ...jobs.map((job) => job.resolved)].map(({ options }) => options.out);
}

async function localJobs(
  mirrors: LocalLakes,
  resolved: Resolved,
  jobs: readonly Job[],
): Promise<{ resolved: Resolved; jobs: Job[] }> {
  const local = jobs.map(async (job) => ({ ...job, resolved: await mirrors.resolve(job.resolved) }));
  return { jobs: await Promise.all(local), resolved: await mirrors.resolve(resolved) };
}

async function retry(invocation: Invocation, given: Typed, loadSource: LoadSource): Promise<ExitCode> {
  const { io } = given;
  const layers = await layersOf(invocation, io);
  const source = await loadSource();
  if (invocation.operand === undefined && layers.some(({ values }) => values.redis !== undefined))
    return withResolved(invocation, { layers, source }, given, async ({ options }) =>
      (await import('./workers/retry-jobs.js')).retryJobs(options, io),
    );
  const path = invocation.operand ?? '';
  const { readReport } = await import('./download/past-runs.js');
  if (!/^s3:/i.test(path))
    return retryReport(path, await readReport(path, source), { layers, source }, given);
  const { resolveOptions } = await import('./options/resolve.js');
  const { options } = resolveOptions('retry', layers, source);
  return withMirrors('retry', given, [path], async (mirrors) => {
    const local = await mirrors.fileAt(path, options);
    return retryReport(local, await readReport(local, source), { layers, source }, given, mirrors);
  });
}

async function retryReport(
  path: string,
  report: ReadReport,
  { layers, source }: { readonly layers: readonly RawLayer[]; readonly source: Source },
  given: Typed,
  opened?: LocalLakes,
): Promise<ExitCode> {
  const { io } = given;
  const { pastJobs, pastRun } = await import('./download/past-runs.js');
  const { resolved, verb, failures, explain } = pastRun(path, report, layers, source);
  if (resolved.options.printOptions) return printOptions('retry', resolved, io);
  const typed = { ...given, sources: resolved };
  const jobs = report.jobs.length === 0 ? [] : pastJobs(path, report, layers, source);
  const act = async (mirrors: LocalLakes): Promise<ExitCode> => {
    if (report.jobs.length === 0) {
      const { download } = await import('./download/download.js');
      const local = await mirrors.resolve(resolved);
      return download({ source, resolved: local, io, typed, verb, failures, explain });
    }
    const { runJobs } = await import('./download/run-jobs.js');
    const earlier = { path, ...report };
    return printingErrors(typed, async () =>
      runJobs({ source, ...(await localJobs(mirrors, resolved, jobs)), earlier, io, typed }),
    );
  };
  return opened === undefined ? withMirrors('retry', typed, lakesOf(resolved, jobs), act) : act(opened);
}
