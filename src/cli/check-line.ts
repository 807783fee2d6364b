/** Checks a command line as the program does before it reads the lake or sends a request. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { checkRequest, readJobs } from '../download/jobs.js';
import { pastRun, readReport } from '../download/past-runs.js';
import { toCryptodlError, usage } from '../model/errors.js';
import type { CryptodlError } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { homeOf } from '../options/environment.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName, Options } from '../options/flags.js';
import { listName } from '../options/list-name.js';
import { resolveOptions } from '../options/resolve.js';
import type { RawLayer, Resolved } from '../options/resolve.js';
import { readSymbolFile } from '../options/symbols.js';
import type { ReadList } from '../options/symbols.js';
import { findDataset, marketNames } from '../source/venue.js';
import type { Source } from '../source/source.js';
import { absolutePath } from '../text/printable.js';
import { correctedWords } from './corrected-line.js';
import { layersOf } from './option-layers.js';
import { parseCommandLine } from './program.js';
import type { Invocation } from './program.js';
import { VERB_TEXTS } from './verbs.js';

export interface CheckContext {
  readonly io: Io;
  readonly source: Source;
  readonly read: ReadList;
  /** Options that count as not given in the environment and in the config file. */
  readonly without?: readonly FlagName[];
}

/** Resolves the options of a command. Throws the usage errors that the command itself would give. */
export async function checkCommand(invocation: Invocation, context: CheckContext): Promise<Resolved> {
  const { verb, operand = '' } = invocation;
  const { io, source, read, without = [] } = context;
  if (verb === 'run') return (await readJobs(invocation, io, source)).resolved;
  const layers = (await layersOf(invocation, io)).map((layer) => layerWithout(layer, without));
  if (verb === 'retry') return pastRun(operand, await readReport(operand, source), layers, source).resolved;
  const resolved = resolveOptions(verb, layers, source);
  const selecting = selectionOf(invocation, resolved);
  if (selecting !== undefined) await checkRequest(selecting, resolved, { source, clock: io.clock, read });
  return resolved;
}

/** The verb whose selection the command makes. */
function selectionOf({ verb, operand }: Invocation, { options }: Resolved): 'vision' | 'metrics' | undefined {
  if (verb === 'vision' || verb === 'metrics') return verb;
  const isArchive =
    verb === 'audit' ? options.symbols !== undefined : operand === 'symbols' || operand === 'periods';
  return isArchive && (verb === 'audit' || verb === 'list') ? 'vision' : undefined;
}

function layerWithout(layer: RawLayer, names: readonly FlagName[]): RawLayer {
  if (names.length === 0 || layer.origin === 'flag') return layer;
  const values = { ...layer.values };
  for (const name of names) delete values[name];
  return { ...layer, values };
}

/** The error of a command line; undefined if the program accepts the line as far as it can be checked without requests. */
export async function refusalOf(
  argv: readonly string[],
  {
    io,
    loadSource,
    without,
  }: Pick<CheckContext, 'io' | 'without'> & { readonly loadSource: () => Promise<Source> },
): Promise<CryptodlError | undefined> {
  try {
    const invocation = parseCommandLine(argv, { stdout: { write: () => true } });
    // Without an invocation, the line prints help.
    if (invocation === undefined) return undefined;
    const source = await loadSource();
    const { options } = await checkCommand(invocation, {
      io,
      source,
      read: readRegularFile,
      ...(without === undefined ? {} : { without }),
    });
    refuseOperand(invocation, options, { io, source });
    if (invocation.behind.length === 0) return undefined;
    const refusal = await refusalOf(invocation.behind, { io, loadSource });
    return refusal === undefined ? undefined : refusalBehind(argv, invocation.behind, refusal);
  } catch (error) {
    return toCryptodlError(error);
  }
}

/** The error of the command behind `--`, with a correction of the whole line. */
function refusalBehind(
  argv: readonly string[],
  behind: readonly string[],
  { message, hint, correction }: CryptodlError,
): CryptodlError {
  const before = argv.slice(0, argv.length - behind.length);
  return usage(
    message,
    hint,
    correction === undefined || correction.command !== undefined
      ? undefined
      : { argv: [...before, ...correctedWords(behind, correction)] },
  );
}

/** A pipe cannot be read twice, so its symbols are not checked. */
const readRegularFile: ReadList = async (list) =>
  list !== 'stdin' && statSync(list.file, { throwIfNoEntry: false })?.isFile() !== false
    ? readSymbolFile(list)
    : 'BTCUSDT';

/** Verbs that read the lake. */
const READERS: readonly Verb[] = [
  'verify',
  'repair',
  'coverage',
  'report',
  'plot',
  'bars',
  'export',
  'universe',
  'sql',
];
/** Verbs that read the lake if no symbols are given. */
const LAKE_VERBS: readonly Verb[] = [...READERS, 'vision', 'metrics', 'audit'];

/** Throws an error for an operand that does not exist, and for a missing lake. */
function refuseOperand(
  { verb, operand = '' }: Invocation,
  options: Options,
  { io, source }: Pick<CheckContext, 'io' | 'source'>,
): void {
  if (verb === 'list') listName(operand === '' ? undefined : operand);
  const { choices } = VERB_TEXTS[verb];
  const isKnown =
    verb === 'schema'
      ? marketNames(source).some((market) => findDataset(source, market, operand) !== undefined)
      : choices === undefined || choices.includes(operand);
  if (!isKnown) throw usage(`${verb}: "${operand}" is not known`);
  if (verb === 'list' && operand === 'periods' && options.symbols === undefined)
    throw usage('list periods needs --symbols');
  const needsLake = options.symbols === undefined ? LAKE_VERBS : READERS;
  if (!needsLake.includes(verb) || options.fetch) return;
  // A lake in a bucket cannot be checked without requests.
  if (/^s3:/i.test(options.out)) return;
  const lake = absolutePath(options.out, homeOf(io.environment));
  if (![source.name, source.archive.topFolder].some((folder) => existsSync(join(lake, folder))))
    throw usage(`${verb} needs a lake, and ${options.out} has none`);
}
