/** Checks the content of the file of `cryptodl run`: jobs and their shared defaults. Usage errors name file, job and key. */
import { fileURLToPath } from 'node:url';
import { packageFile } from '../../files/package-file.js';
import { CryptodlError, usage } from '../../model/errors.js';
import { shownPath } from '../../text/printable.js';
import { fileLayer, helpHint } from './config-file.js';
import type { FlagName } from './flags.js';
import { choice } from './parsers.js';
import type { RawLayer } from './resolve.js';
import { flagsOf, type VerbSpec, type VerbSpecs } from './verb-spec.js';
import { isRecord } from '../../text/json.js';

export interface JobEntry {
  readonly name: string;
  readonly verb: 'vision' | 'metrics';
  readonly layer: RawLayer;
  /** Copies an error for the user. The copy names the file and the job. */
  readonly explain: (error: CryptodlError) => CryptodlError;
}

const VERBS_OF_JOBS = ['vision', 'metrics'] as const;
/** Flags for the whole run, because all jobs share the terminal and the log, and the reports lie side by side. */
const SHARED: readonly FlagName[] = [
  'failures',
  'jobs',
  'json',
  'progress',
  'prometheus-port',
  'prometheus-textfile',
  'quiet',
  'log-file',
  'log-level',
];
const COMMAND_LINE_ONLY: readonly FlagName[] = ['config', 'dry-run', 'only', 'print-options'];

const EXAMPLE = fileURLToPath(packageFile('config/jobs.example.yaml'));

/** Names the example in the package, which is not in the working directory of a user. */
export const JOBS_HINT = `${shownPath(EXAMPLE)} is an example of a file of jobs`;

const SHAPE = `for example: jobs: { bars: { verb: vision, symbols: BTCUSDT, days: 7 } }\n${JOBS_HINT}`;

/** The jobs in the order of the file. Checks the keys; values are parsed later. */
export function jobsFile(
  file: string,
  content: unknown,
  verbs: VerbSpecs,
): { readonly jobs: readonly JobEntry[]; readonly defaults: RawLayer } {
  const { jobs, defaults = {}, ...others } = isRecord(content) ? content : {};
  const isComplete = isRecord(jobs) && Object.keys(jobs).length > 0;
  if (!isComplete || Object.keys(others).length > 0)
    throw usage(`${file} is not a map with jobs, and with nothing else but defaults`, SHAPE);
  return {
    defaults: fileLayer(defaults, {
      origin: 'defaults of the jobs',
      place: `${file}: defaults`,
      known: [verbs.vision, verbs.metrics, verbs.run].flatMap(keysOf),
      hint: helpHint('vision'),
    }),
    jobs: Object.entries(jobs).map(([name, job]) => jobEntry(file, name, job, verbs)),
  };
}

const keysOf = (verb: VerbSpec): FlagName[] =>
  flagsOf(verb).filter((flag) => !COMMAND_LINE_ONLY.includes(flag));

function jobEntry(file: string, name: string, job: unknown, verbs: VerbSpecs): JobEntry {
  const place = `${file}: jobs.${name}`;
  // JavaScript moves keys that are numbers to the front, which would change the order of jobs.
  if (!/^\p{L}[\p{L}\p{N}_.-]*$/u.test(name))
    throw usage(
      `${file}: jobs: "${name}" is not a valid name of a job`,
      'write a letter, then letters, digits, dots, dashes and underscores',
    );
  const { verb: given = '', ...map } = isRecord(job) ? job : {};
  const verb = choice(VERBS_OF_JOBS)(String(given), `${place}: verb`);
  const known = keysOf(verbs[verb]).filter((flag) => !SHARED.includes(flag));
  const hint = `${helpHint(verb)}; write ${SHARED.join(', ')} under defaults, because they are the same for all jobs`;
  const layer = fileLayer(map, { origin: 'job', place, known, hint });
  return { name, verb, layer, explain: (error) => withPlace(place, error) };
}

function withPlace(place: string, { message, hint, cause, code, isPlaced }: CryptodlError): CryptodlError {
  return new CryptodlError(code, isPlaced ? message : `${place}: ${message}`, { cause, hint });
}
