/** Arguments in, exit code out. `run` may be called several times in one process. */
import { complain } from './cli/complain.js';
import { parseCommandLine } from './cli/program.js';
import type { Invocation } from './cli/program.js';
import { printOptions } from './cli/print-options.js';
import { toCryptodlError, usage } from './errors.js';
import type { ExitCode } from './exit-code.js';
import type { Io } from './io.js';
import { defaultOf } from './options/flags.js';
import type { FlagName, Verb } from './options/flags.js';
import { configLayer, environmentLayer, resolveOptions } from './options/resolve.js';
import type { RawLayer, RawValues } from './options/resolve.js';
import type { PastFailures } from './run/want-failures.js';

export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  try {
    const invocation = parseCommandLine(argv, io);
    return invocation === undefined ? 0 : await dispatch(invocation, argv, io);
  } catch (error) {
    return complain(toCryptodlError(error), { argv, io });
  }
}

/** Each verb loads what it needs and no more. */
async function dispatch(invocation: Invocation, argv: readonly string[], io: Io): Promise<ExitCode> {
  const { verb, operand } = invocation;
  const layers = await layersOf(invocation, io);
  const report = verb === 'retry' ? await readReport(operand) : undefined;
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
  const typed = { argv, io };
  switch (verb) {
    case 'vision':
    case 'metrics':
    case 'retry': {
      const { download } = await import('./cli/download.js');
      return download({
        resolved,
        io,
        typed,
        verb: verb === 'retry' ? (report?.verb ?? 'vision') : verb,
        ...(report === undefined ? {} : { failures: report.failures }),
      });
    }
    case 'list': {
      const { list } = await import('./cli/list.js');
      return list(operand, { resolved, io, typed });
    }
    case 'schema': {
      const { schema } = await import('./cli/schema.js');
      return schema(operand, resolved, io);
    }
    case 'serve': {
      const { serve } = await import('./cli/serve.js');
      return serve(operand ?? '', resolved.options, io);
    }
    case 'completion': {
      const { completion } = await import('./cli/completion.js');
      return completion(operand, io);
    }
  }
}

/** A report of `metrics` is run again at its pace. */
function defaultsOf(verb: Verb): RawValues {
  const names = ['concurrency', 'retry-preset'] as const;
  return Object.fromEntries(names.map((name) => [name, [defaultOf(name, verb) ?? '']]));
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

async function readReport(operand: string | undefined): Promise<{
  failures: PastFailures;
  layer: RawLayer;
  verb: 'vision' | 'metrics';
}> {
  if (operand === undefined || operand === '')
    throw usage('retry needs the failure report of a run', 'cryptodl retry data/failures/vision-….jsonl');
  const { readFailureReport } = await import('./report/failure-report.js');
  const { header, entries } = await readFailureReport(operand);
  const { carriedOptions } = await import('./run/want-failures.js');
  const verb = entries.some(({ key }) => key.startsWith('rest/')) ? 'metrics' : 'vision';
  const layer: RawLayer = {
    origin: 'failure report',
    values: { ...(verb === 'metrics' ? defaultsOf(verb) : {}), ...carriedOptions(header.options) },
    nameOf: (name) => `${operand}: ${name}`,
  };
  return { failures: { path: operand, entries }, layer, verb };
}
