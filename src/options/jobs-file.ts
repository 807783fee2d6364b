/** Checks the content of the file of `cryptodl run`: jobs and their shared defaults. Usage errors name file, job and key. */
import { fileURLToPath } from 'node:url';
import { CryptodlError, usage } from '../model/errors.js';
import { didYouMean } from '../text/did-you-mean.js';
import { shownPath, yamlWord } from '../text/printable.js';
import { flagsOf, nameOptions } from './flags.js';
import type { FlagName } from './flags.js';
import { mapValues } from './resolve.js';
import type { RawLayer } from './resolve.js';

export interface JobEntry {
  readonly name: string;
  readonly verb: 'vision' | 'metrics';
  readonly layer: RawLayer;
  /** Copies an error for the user. The copy names the file and the job, and writes options as keys of the file (`days`, not `--days`). */
  readonly explain: (error: CryptodlError) => CryptodlError;
}

export interface JobsFile {
  /** In the order of the file. */
  readonly jobs: readonly JobEntry[];
  readonly defaults: RawLayer;
}

const VERBS_OF_JOBS = ['vision', 'metrics'] as const;
/** Flags for the whole run, because all jobs share the terminal, the report and the log. */
const SHARED: readonly FlagName[] = [
  'failures',
  'jobs',
  'json',
  'progress',
  'prometheus-port',
  'prometheus-textfile',
  'quiet',
  'verbose',
  'log-file',
  'log-level',
];
/** Flags for the command line only. */
const COMMAND_LINE_ONLY: readonly FlagName[] = ['config', 'dry-run', 'only', 'print-options'];

/** The error for a config file of `run`: the file of jobs holds the options itself. `where` begins the message. */
export function noConfigFile(where: string, file: string): CryptodlError {
  return usage(`${where}run takes no config file`, `write its keys under defaults of ${file}`);
}

const EXAMPLE = fileURLToPath(new URL('../../config/jobs.example.yaml', import.meta.url));

/** Names the example in the package, which is not in the working directory of a user. */
export const JOBS_HINT = `${shownPath(EXAMPLE)} is an example of a file of jobs`;

const SHAPE = `for example: jobs: { bars: { verb: vision, symbols: BTCUSDT, days: 7 } }\n${JOBS_HINT}`;

/** Checks the keys of the file; values are parsed later. */
export function jobsFile(file: string, content: unknown): JobsFile {
  if (!isMap(content)) throw usage(`${file} does not contain a map of jobs`, SHAPE);
  for (const key of Object.keys(content)) {
    if (key === 'jobs' || key === 'defaults') continue;
    throw usage(`${file}: unknown key "${key}"`, didYouMean(key, ['jobs', 'defaults']) ?? SHAPE);
  }
  const { defaults = {}, jobs } = content;
  if (!isMap(defaults)) throw usage(`${file}: defaults is not a map of option names to values`, SHAPE);
  if (jobs !== undefined && jobs !== null && !isMap(jobs))
    throw usage(`${file}: jobs is not a map of names to jobs`, SHAPE);
  if (!isMap(jobs) || Object.keys(jobs).length === 0) throw usage(`${file}: no jobs`, SHAPE);
  return {
    defaults: defaultsLayer(file, defaults),
    jobs: Object.entries(jobs).map(([name, job]) => jobEntry(file, name, job)),
  };
}

function defaultsLayer(file: string, map: object): RawLayer {
  const where = `${file}: defaults`;
  const known = new Set([...flagsOf('vision'), ...flagsOf('metrics'), ...flagsOf('run')]);
  const values = mapValues(map, {
    nameOf: (key) => `${where}: ${key}`,
    isKnown: (name) => known.has(name) && !COMMAND_LINE_ONLY.includes(name),
    refuse: (key) =>
      key === 'config'
        ? noConfigFile(`${where}: config: `, file)
        : unknownKey(where, key, [...known], 'see cryptodl vision --help for the names'),
  });
  return { origin: 'defaults of the jobs', values, nameOf: (name) => `${where}: ${name}` };
}

function jobEntry(file: string, name: string, job: unknown): JobEntry {
  const where = `${file}: jobs.${name}`;
  // JavaScript moves keys that are numbers to the front, which would change the order of jobs.
  if (!/^\p{L}[\p{L}\p{N}_.-]*$/u.test(name))
    throw usage(
      `${file}: jobs: "${name}" is not a valid name of a job`,
      'write a letter, then letters, digits, dots, dashes and underscores',
    );
  if (!isMap(job)) throw usage(`${where} is not a map of option names to values`, SHAPE);
  const { verb: given, ...map } = job;
  const verb = VERBS_OF_JOBS.find((known) => known === given);
  if (verb === undefined) throw refuseVerb(where, given);
  const values = mapValues(map, {
    nameOf: (key) => `${where}: ${key}`,
    isKnown: (flag) =>
      flagsOf(verb).includes(flag) && !COMMAND_LINE_ONLY.includes(flag) && !SHARED.includes(flag),
    refuse: (key) =>
      key === 'config' ? noConfigFile(`${where}: config: `, file) : refuseKey(where, verb, key),
  });
  const layer: RawLayer = { origin: 'job', values, nameOf: (flag) => `${where}: ${flag}` };
  return { name, verb, layer, explain: (error) => withPlace(file, where, error) };
}

function refuseVerb(where: string, given: unknown): Error {
  if (given === undefined) return usage(`${where} has no verb`, 'verb: vision or verb: metrics');
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  const hint = didYouMean(text, VERBS_OF_JOBS) ?? 'verb: vision or verb: metrics';
  return usage(`${where}: verb: "${text}" is not one of ${VERBS_OF_JOBS.join(', ')}`, hint);
}

function refuseKey(where: string, verb: JobEntry['verb'], key: string): Error {
  if (SHARED.some((name) => name === key))
    return usage(`${where}: ${key} is the same for all jobs`, 'write it under defaults');
  if (COMMAND_LINE_ONLY.some((name) => name === key))
    return usage(`${where}: ${key} is for the command line`, `cryptodl run FILE --${key}`);
  const names = flagsOf(verb).filter((name) => !COMMAND_LINE_ONLY.includes(name) && !SHARED.includes(name));
  const other = VERBS_OF_JOBS.find((candidate) => flagsOf(candidate).some((name) => name === key));
  const hint =
    other === undefined ? `see cryptodl ${verb} --help for the names` : `${key} is a flag of ${other}`;
  return unknownKey(where, key, ['verb', ...names], hint);
}

function unknownKey(where: string, key: string, names: readonly string[], hint: string): Error {
  return usage(`${where}: unknown key "${key}"`, didYouMean(key, names) ?? hint);
}

/** The error with file and job. Corrections become lines of the file instead of a command line. */
function withPlace(file: string, where: string, error: CryptodlError): CryptodlError {
  const { message, hint, correction, cause, code } = error;
  const hasPlace = message.startsWith(`${file}: `);
  const lines = Object.entries(correction?.flags ?? {}).map(([name, value]) =>
    value === null ? `delete "${name}"` : `${name}: ${yamlWord(value)}`,
  );
  const help = [
    hint === undefined ? undefined : nameOptions(hint, (name) => name),
    ...lines.filter((line) => hint?.includes(line) !== true),
  ];
  const text = help.filter((line) => line !== undefined).join('\n  ');
  return new CryptodlError(code, hasPlace ? message : `${where}: ${nameOptions(message, (name) => name)}`, {
    cause,
    ...(text === '' ? {} : { hint: text }),
  });
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
