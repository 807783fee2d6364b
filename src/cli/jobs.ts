/** `cryptodl run FILE`: the jobs of a file, with their options, all of them looked at before the first begins. */
import { systemClock } from '../clock.js';
import { didYouMean, nearest } from '../did-you-mean.js';
import { toCryptodlError, usage } from '../errors.js';
import type { Io } from '../io.js';
import { readConfigFile } from '../options/config-file.js';
import { jobsFile } from '../options/jobs-file.js';
import type { JobEntry } from '../options/jobs-file.js';
import { environmentLayer, resolveOptions } from '../options/resolve.js';
import type { RawLayer, Resolved } from '../options/resolve.js';
import { checkRequest } from '../run/check-request.js';
import { readSymbolFile } from '../run/read-symbol-file.js';
import { typedLayer } from './layers.js';
import type { Invocation } from './program.js';
import type { Job } from './job.js';

export interface Jobs {
  /** Of the run as a whole. */
  readonly resolved: Resolved;
  readonly jobs: readonly Job[];
}

/** Throws usage errors for the file, and for every job that could not be understood when its turn comes. */
export async function readJobs(invocation: Invocation, io: Io): Promise<Jobs> {
  const path = invocation.operand ?? '';
  if (path === '') throw usage('run needs a file with jobs', 'cryptodl run config/jobs.example.yaml');
  const { jobs: entries, defaults } = jobsFile(
    path,
    await readConfigFile(path, 'run', 'config/jobs.example.yaml shows what a file of jobs looks like'),
  );
  const flags = typedLayer(invocation);
  const resolved = resolveOptions('run', [flags, environmentLayer(io.environment, 'run'), defaults]);
  const jobs: Job[] = [];
  for (const entry of chosen(entries, resolved.options.only, path)) {
    const layers = [flags, environmentLayer(io.environment, entry.verb), entry.layer, defaults];
    jobs.push({ ...entry, resolved: await checked(entry, layers) });
  }
  return { resolved, jobs };
}

async function checked({ verb, blame }: JobEntry, layers: readonly RawLayer[]): Promise<Resolved> {
  try {
    const resolved = resolveOptions(verb, layers);
    await checkRequest(verb, resolved, { clock: systemClock, read: readSymbolFile });
    return resolved;
  } catch (error) {
    throw blame(toCryptodlError(error));
  }
}

function chosen(
  entries: readonly JobEntry[],
  only: readonly string[] | undefined,
  path: string,
): readonly JobEntry[] {
  if (only === undefined) return entries;
  const names = entries.map(({ name }) => name);
  for (const name of only) {
    if (names.includes(name)) continue;
    const near = nearest(name, names) ?? names[0] ?? '';
    throw usage(`--only: ${path} has no job "${name}", but ${names.join(', ')}`, didYouMean(name, names), {
      flags: { only: [...new Set(only.map((one) => (one === name ? near : one)))].join(',') },
    });
  }
  return entries.filter(({ name }) => only.includes(name));
}
