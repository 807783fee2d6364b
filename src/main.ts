/** Runs a command line: arguments in, exit code out. `run` may be called several times in one process. */
import type { Typed } from './cli/print-error.js';
import { parseCommandLine } from './cli/program.js';
import type { Invocation } from './cli/program.js';
import { toCryptodlError } from './model/errors.js';
import type { ExitCode } from './model/exit-code.js';
import type { Io } from './model/io.js';
import type { Verb } from './options/flag-spec.js';
import type { RawLayer, Resolved } from './options/resolve.js';
import type { Source } from './source/source.js';
import { printLines } from './text/printable.js';

/** Reads what is known of an exchange. Only verbs that need it do, because it takes longer than all else that `--help` does. */
export type LoadSource = () => Promise<Source>;

const loadDefault: LoadSource = async () => {
  const { loadBinance } = await import('./source/binance/binance.js');
  return loadBinance();
};

export async function run(
  argv: readonly string[],
  io: Io,
  loadSource: LoadSource = loadDefault,
): Promise<ExitCode> {
  const typed = { argv, io };
  return printingErrors(typed, async () => {
    const invocation = parseCommandLine(argv, io);
    return invocation === undefined ? 0 : dispatch(invocation, typed, loadSource);
  });
}

async function printingErrors(typed: Typed, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    const { complain } = await import('./cli/print-error.js');
    return complain(toCryptodlError(error), typed);
  }
}

/** Resolves the options of a verb and runs it. Help and version do not get here. */
async function dispatch(invocation: Invocation, given: Typed, loadSource: LoadSource): Promise<ExitCode> {
  const { verb, operand } = invocation;
  const { io } = given;
  if (verb === 'run') return runFile(invocation, given, await loadSource());
  const { layersOf } = await import('./cli/option-layers.js');
  const layers = await layersOf(invocation, io);
  if (verb === 'retry') return retry(operand, layers, given, await loadSource());
  const { resolveOptions } = await import('./options/resolve.js');
  if (verb === 'serve' || verb === 'completion') {
    const resolved = resolveOptions(verb, layers);
    if (resolved.options.printOptions) return printOptionsOf(verb, resolved, io);
    if (verb === 'completion') return (await import('./cli/completion.js')).completion(operand, io);
    return (await import('./serve/serve.js')).serve(operand ?? '', resolved.options, io);
  }
  const source = await loadSource();
  const resolved = resolveOptions(verb, layers, source);
  if (resolved.options.printOptions) return printOptionsOf(verb, resolved, io);
  // Errors name an option as it was given: as a flag, an environment variable or a key of a file.
  const typed = { ...given, nameOf: resolved.nameOf };
  return printingErrors(typed, () => runVerb(verb, invocation, { source, resolved, io, typed }));
}

interface VerbRun {
  readonly source: Source;
  readonly resolved: Resolved;
  readonly io: Io;
  readonly typed: Typed;
}

/** Each verb loads only its own modules. */
async function runVerb(
  verb: Exclude<Verb, 'run' | 'retry' | 'serve' | 'completion'>,
  { operand, behind }: Invocation,
  verbRun: VerbRun,
): Promise<ExitCode> {
  const { source, resolved, typed } = verbRun;
  switch (verb) {
    case 'vision':
    case 'metrics':
    case 'repair': {
      const { download } = await import('./download/download.js');
      return download({ ...verbRun, verb });
    }
    case 'verify': {
      const { verify } = await import('./verify/verify.js');
      return verify(verbRun);
    }
    case 'list': {
      const { list } = await import('./catalog/list.js');
      return list(operand, verbRun);
    }
    case 'schema': {
      const { schema } = await import('./catalog/schema.js');
      return schema(operand, verbRun);
    }
    case 'audit': {
      const { audit } = await import('./audit/audit.js');
      return audit(verbRun);
    }
    case 'sql': {
      const { sql } = await import('./query/sql.js');
      return sql(operand, verbRun);
    }
    case 'coverage': {
      const { coverage } = await import('./coverage/coverage.js');
      return coverage(verbRun);
    }
    case 'doctor': {
      const { doctor } = await import('./doctor/doctor.js');
      return doctor(verbRun);
    }
    case 'schedule': {
      const { schedule } = await import('./schedule/schedule.js');
      return schedule(behind, resolved.options, typed, source);
    }
  }
}

async function printOptionsOf(verb: Verb, resolved: Resolved, io: Io): Promise<ExitCode> {
  printLines(io.stdout, await optionsLines(verb, resolved));
  return 0;
}

async function optionsLines(verb: Verb, resolved: Resolved): Promise<string[]> {
  const { printOptions } = await import('./cli/print-options.js');
  return printOptions(verb, resolved);
}

async function runFile(invocation: Invocation, given: Typed, source: Source): Promise<ExitCode> {
  const { io } = given;
  const { readJobs } = await import('./download/jobs.js');
  const { resolved, jobs } = await readJobs(invocation, io, source);
  if (resolved.options.printOptions) {
    for (const job of jobs)
      printLines(io.stdout, [`[${job.name}]`, ...(await optionsLines(job.verb, job.resolved))]);
    return 0;
  }
  const { runJobs } = await import('./download/run-jobs.js');
  const typed = { ...given, nameOf: resolved.nameOf };
  return printingErrors(typed, () => runJobs({ source, jobs, resolved, io, typed }));
}

async function retry(
  operand: string | undefined,
  layers: readonly RawLayer[],
  given: Typed,
  source: Source,
): Promise<ExitCode> {
  const { pastJobs, pastRun, readReport } = await import('./download/past-runs.js');
  const { io } = given;
  const path = operand ?? '';
  const report = await readReport(path, source);
  const { resolved, verb, failures, blame } = pastRun(path, report, layers, source);
  if (resolved.options.printOptions) return printOptionsOf('retry', resolved, io);
  const typed = { ...given, nameOf: resolved.nameOf };
  if (report.jobs.length === 0) {
    const { download } = await import('./download/download.js');
    return download({ source, resolved, io, typed, verb, failures, blame });
  }
  const { runJobs } = await import('./download/run-jobs.js');
  const jobs = pastJobs(path, report, layers, source);
  const earlier = { path, ...report };
  return printingErrors(typed, () => runJobs({ source, jobs, resolved, earlier, io, typed }));
}
