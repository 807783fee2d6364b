/** `cryptodl retry FILE`: what a failure report says is to be run again, and with which options. */
import { CryptodlError, usage } from '../errors.js';
import { defaultOf } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { resolveOptions } from '../options/resolve.js';
import type { RawLayer, RawValues, Resolved } from '../options/resolve.js';
import { readFailureReport } from '../report/read-failure-report.js';
import type { ReadReport } from '../report/read-failure-report.js';
import { carriedOptions } from '../run/want-failures.js';
import type { PastFailures } from '../run/want-failures.js';
import type { Job } from './job.js';

interface PastRun {
  readonly verb: 'vision' | 'metrics';
  readonly resolved: Resolved;
  readonly failures: PastFailures;
}

export function readReport(operand: string): Promise<ReadReport> {
  if (operand === '')
    throw usage('retry needs the failure report of a run', 'cryptodl retry data/failures/vision-….jsonl');
  return readFailureReport(operand);
}

/** `layers`: what is said now; the report says the rest. */
export function pastRun(
  path: string,
  {
    file,
    header,
    entries,
  }: Pick<ReadReport, 'file' | 'entries'> & { readonly header: Pick<ReadReport['header'], 'options'> },
  layers: readonly RawLayer[],
): PastRun {
  const verb = entries.some(({ key }) => key.startsWith('rest/')) ? 'metrics' : 'vision';
  const told: RawLayer = {
    origin: 'failure report',
    values: { ...(verb === 'metrics' ? paceOfMetrics() : {}), ...carriedOptions(header.options) },
    nameOf: (name) => `${path}: ${name}`,
  };
  const [flags, ...others] = layers;
  // Where the lake is, the report knows better than an environment made for another one.
  const ordered = [...(flags === undefined ? [] : [flags]), only(told, ['out', 'temp-dir']), ...others, told];
  return { verb, resolved: resolveOptions('retry', ordered), failures: { path, file, entries } };
}

/** The report of several jobs: each with its own failures and options. */
export function pastJobs(path: string, report: ReadReport, layers: readonly RawLayer[]): Job[] {
  return report.jobs.flatMap(({ job: name, options }) => {
    const entries = report.entries.filter(({ job }) => job === name);
    if (entries.length === 0) return [];
    const blame = (error: CryptodlError): CryptodlError => ofJob(name, error);
    return [{ name, blame, ...pastRun(path, { file: report.file, header: { options }, entries }, layers) }];
  });
}

function ofJob(name: string, { code, message, hint, cause }: CryptodlError): CryptodlError {
  return new CryptodlError(code, `job ${name}: ${message}`, {
    cause,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** What came from REST is run again at its pace. */
function paceOfMetrics(): RawValues {
  const names = ['concurrency', 'retry-preset'] as const;
  return Object.fromEntries(names.map((name) => [name, [defaultOf(name, 'metrics') ?? '']]));
}

function only(layer: RawLayer, names: readonly FlagName[]): RawLayer {
  return {
    ...layer,
    values: Object.fromEntries(
      names.flatMap((name) => (layer.values[name] === undefined ? [] : [[name, layer.values[name]]])),
    ),
  };
}
