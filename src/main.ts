/** Arguments in, exit code out. `run` may be called several times in one process. */
import { parseCommandLine } from './cli/program.js';
import type { Invocation } from './cli/program.js';
import { printOptions } from './cli/print-options.js';
import { systemClock } from './clock.js';
import { CryptodlError, toCryptodlError, usage } from './errors.js';
import type { ExitCode } from './exit-code.js';
import { exitCode } from './exit-code.js';
import type { Io } from './io.js';
import type { FlagName } from './options/flags.js';
import { configLayer, environmentLayer, resolveOptions } from './options/resolve.js';
import type { RawLayer, Resolved } from './options/resolve.js';

export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  try {
    const invocation = parseCommandLine(argv, io);
    return invocation === undefined ? 0 : await dispatch(invocation, io);
  } catch (error) {
    return complain(toCryptodlError(error), io);
  }
}

/** One line that says what, where and what to type; bugs also show where they are. */
function complain(error: CryptodlError, io: Io): ExitCode {
  io.stderr.write(`cryptodl: ${error.message}\n`);
  if (error.hint !== undefined) io.stderr.write(`  ${error.hint}\n`);
  if (error.code === 'bug' && error.cause instanceof Error) io.stderr.write(`${error.cause.stack ?? ''}\n`);
  return exitCode({
    ended: error.code,
    signal: undefined,
    waitedTooLong: 0,
    failedRetryable: 0,
    failedPermanent: 0,
    holes: 0,
    partial: 0,
    strict: false,
  });
}

async function dispatch(invocation: Invocation, io: Io): Promise<ExitCode> {
  const { verb } = invocation;
  const layers = await layersOf(invocation, io);
  const report = verb === 'retry' ? await readReport(invocation.operand) : undefined;
  if (report !== undefined) {
    // Where the lake is, the report knows better than an environment made for another one.
    layers.splice(1, 0, only(report.layer, ['out', 'temp-dir']));
    layers.push(report.layer);
  }
  const resolved = resolveOptions(verb, layers);
  if (resolved.options['print-options'] === true) {
    io.stdout.write(printOptions(verb, resolved));
    return 0;
  }
  if (verb === 'serve') {
    const { serve } = await import('./cli/serve.js');
    return serve(invocation.operand ?? '', resolved.options, io);
  }
  return download(resolved, io, report);
}

function only(layer: RawLayer, names: readonly FlagName[]): RawLayer {
  return {
    ...layer,
    values: Object.fromEntries(
      names.flatMap((name) => (layer.values[name] === undefined ? [] : [[name, layer.values[name]]])),
    ),
  };
}

async function layersOf(invocation: Invocation, io: Io): Promise<RawLayer[]> {
  const { verb } = invocation;
  const flags: RawLayer = { origin: 'flag', values: invocation.values, nameOf: (name) => `--${name}` };
  const environment = environmentLayer(io.environment, verb);
  const file = flags.values.config?.at(-1) ?? environment.values.config?.at(-1);
  if (file === undefined) return [flags, environment];
  const { readConfigFile } = await import('./options/config-file.js');
  return [flags, environment, configLayer(file, await readConfigFile(file), verb)];
}

interface Report {
  readonly path: string;
  readonly entries: Parameters<typeof import('./cli/retry.js').retryReport>[0]['entries'];
  readonly layer: RawLayer;
}

async function readReport(operand: string | undefined): Promise<Report> {
  if (operand === undefined || operand === '')
    throw usage('retry needs the failure report of a run', 'cryptodl retry data/failures/vision-….jsonl');
  const { readFailureReport } = await import('./report/failure-report.js');
  const { header, entries } = await readFailureReport(operand);
  const { carriedOptions } = await import('./cli/retry.js');
  const layer: RawLayer = {
    origin: 'failure report',
    values: carriedOptions(header.options),
    nameOf: (name) => `${operand}: ${name}`,
  };
  return { path: operand, entries, layer };
}

async function download(resolved: Resolved, io: Io, report: Report | undefined): Promise<ExitCode> {
  const { openSession } = await import('./session.js');
  const session = openSession(resolved.options, io, systemClock);
  try {
    if (report === undefined) {
      const { vision } = await import('./cli/vision.js');
      const given = new Set(
        Object.entries(resolved.origins).flatMap(([name, origin]) => (origin === 'default' ? [] : [name])),
      );
      return await vision({ session, io, texts: resolved.texts, given });
    }
    const { retryReport } = await import('./cli/retry.js');
    return await retryReport({
      session,
      io,
      texts: resolved.texts,
      path: report.path,
      entries: report.entries,
    });
  } catch (error) {
    const known = toCryptodlError(error);
    const code =
      session.signalled() === undefined ? complain(known, io) : session.signalled() === 'SIGINT' ? 130 : 143;
    if (session.signalled() !== undefined)
      session.reporter.alarm([`cryptodl: ended by ${session.signalled()} before the work began`]);
    session.reporter.event('summary', {
      outcomes: session.reporter.tally.outcomes,
      error: { code: known.code, message: known.message },
      exitCode: code,
    });
    return code;
  } finally {
    await session.close();
  }
}
