/** `cryptodl run FILE`: reads the jobs of a file and checks the options of all chosen jobs before the first job begins. */
import type { Clock } from '../model/clock.js';
import { toCryptodlError, usage } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { readConfigFile } from '../plan/options/config-file.js';
import { JOBS_HINT, jobsFile, type JobEntry } from '../plan/options/jobs-file.js';
import { nowMsOf, type RunFlag } from '../plan/options/verb-request.js';
import { environmentLayer, flagLayer, resolveOptions } from '../plan/options/resolve.js';
import type { Invocation, RawLayer, Resolved } from '../plan/options/resolve.js';
import type { VerbSpec, VerbSpecs } from '../plan/options/verb-spec.js';
import { parseDownload } from '../plan/select/select-series.js';
import { didYouMean } from '../text/did-you-mean.js';
import type { Exchange } from '../exchange/exchange.js';

/** `resolved`: the options of the command as a whole. Throws a usage error for a missing or invalid file, for an unknown name in `--only`, or for the first job with invalid options. */
export async function readJobs(
  invocation: Invocation,
  { io, verbs }: { readonly io: Io; readonly verbs: VerbSpecs },
  exchange: Exchange,
) {
  const path = invocation.operand ?? '';
  if (path === '') throw usage('run needs a file with jobs', JOBS_HINT);
  const { jobs: entries, defaults } = jobsFile(path, await readConfigFile(path, 'run', JOBS_HINT), verbs);
  const flags = flagLayer(invocation);
  const resolved = resolveOptions(
    verbs.run,
    [flags, environmentLayer(io.environment, verbs.run), defaults],
    exchange,
  );
  const jobs: Job[] = [];
  for (const entry of chosen(entries, resolved, path)) {
    const layers = [flags, environmentLayer(io.environment, verbs[entry.verb]), entry.layer, defaults];
    jobs.push({
      ...entry,
      resolved: await checked(entry, layers, { exchange, clock: io.clock, spec: verbs[entry.verb] }),
    });
  }
  return { resolved, jobs };
}

async function checked(
  { verb, explain }: JobEntry,
  layers: readonly RawLayer[],
  { exchange, clock, spec }: { readonly exchange: Exchange; readonly clock: Clock; readonly spec: VerbSpec },
): Promise<Resolved> {
  try {
    const resolved = resolveOptions(spec, layers, exchange);
    await checkRequest(verb, resolved, { exchange, clock });
    return resolved;
  } catch (error) {
    throw explain(toCryptodlError(error));
  }
}

function chosen(
  entries: readonly JobEntry[],
  { options: { only } }: Resolved<'only'>,
  path: string,
): readonly JobEntry[] {
  if (only === undefined) return entries;
  const names = entries.map(({ name }) => name);
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw usage(
      `--only: ${path} has no job "${unknown}"; it has ${names.join(', ')}`,
      didYouMean(unknown, names) ?? 'name some of these, or leave out --only',
    );
  return entries.filter(({ name }) => only.includes(name));
}

export interface Job extends Omit<JobEntry, 'layer'> {
  readonly resolved: Resolved;
}

/** Throws the usage errors that the options and symbol files of a run cause. Sends no request and does not read the lake. */
export async function checkRequest(
  verb: 'vision' | 'metrics',
  resolved: Resolved<RunFlag>,
  { exchange, clock }: { readonly exchange: Exchange; readonly clock: Clock },
): Promise<void> {
  const { options } = resolved;
  const asking = { options, exchange, nowMs: nowMsOf({ resolved, clock }) };
  parseDownload(asking, verb);
  await options.symbols?.patterns();
}
