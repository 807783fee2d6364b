/** The command line (commander), made from the flag table. */
import { Command, CommanderError, Option } from 'commander';
import { HELP_FLAGS, isVerb, textsOf, verbOf, wordsOf } from './command-words.js';
import { camelCase, flagSpec, flagsOf } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import type { RawValues } from '../options/resolve.js';
import { TOOL_VERSION } from '../model/version.js';
import { refuseArguments, refuseMissingValues, refuseVerb } from './explain-arguments.js';
import { refuseMisplacedCommand } from './explain-commands.js';
import { isFolder } from './fold-operands.js';
import { helpText } from './help.js';
import type { Tier } from './help.js';
import { VERB_TEXTS } from './verbs.js';

/** A parsed command line. */
export interface Invocation {
  readonly verb: Verb;
  readonly operand: string | undefined;
  /** All operands of a verb that takes several. */
  readonly operands: readonly string[];
  readonly values: RawValues;
  /** The words after `--`: the command line that `schedule` repeats. */
  readonly behind: readonly string[];
}

/** Parses a command line. Undefined after help or the version was printed. Throws usage errors. */
export function parseCommandLine(
  argv: readonly string[],
  io: { readonly stdout: { readonly write: (text: string) => unknown; readonly columns?: number } },
): Invocation | undefined {
  let invocation: Invocation | undefined;
  const { own, behind } = partsOf(argv);
  refuseMissingValues(argv);
  const line = withRootFlag(own);
  const [first = '-'] = line;
  const verb = verbOf(line);
  if (!first.startsWith('-') && verb === undefined) refuseVerb(line);
  const words = verb === undefined ? line : textsOf(wordsOf(line, verb));
  const tier = tierOf(words);
  if (tier !== undefined) {
    io.stdout.write(helpText(verb, tier, io.stdout.columns));
    return undefined;
  }
  if (verb !== undefined) refuseMisplacedCommand(argv, verb);
  const program = new Command('cryptodl')
    .version(TOOL_VERSION)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: () => undefined })
    .helpOption(false)
    .helpCommand(false)
    .argument('[command]')
    .action(() => {
      refuseVerb([]);
    });
  if (verb !== undefined)
    addVerb(program, verb, (operands, values) => {
      invocation = { verb, operand: operands[0], operands, values, behind };
    });
  try {
    program.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw refuseArguments(error, argv);
  }
  return invocation;
}

/** The help that a line asks for; undefined if it asks for none. */
function tierOf(words: readonly string[]): Tier | undefined {
  const end = words.indexOf('--');
  const flags = words.slice(0, end < 0 ? undefined : end).filter((word) => HELP_FLAGS.has(word));
  if (flags.length === 0) return undefined;
  return flags.includes('--help-all') ? 'all' : 'brief';
}

/** The words before and after `--`, for a verb that takes another command; for other verbs, `own` has all words. */
function partsOf(argv: readonly string[]): { own: readonly string[]; behind: readonly string[] } {
  const verb = verbOf(argv);
  const at = verb === undefined || VERB_TEXTS[verb].behind === undefined ? -1 : argv.indexOf('--');
  return at < 0 ? { own: argv, behind: [] } : { own: argv.slice(0, at), behind: argv.slice(at + 1) };
}

/** Turns `help`, `help vision` and `vision help` into `--help`, `version` and a lone `-v` into `--version`. */
function withRootFlag(argv: readonly string[]): string[] {
  const [first = '', second] = argv;
  if (first === 'version' || (first === '-v' && second === undefined)) return ['--version'];
  if (first === 'help') return second === undefined ? ['--help'] : [second, '--help'];
  return second === 'help' && argv.length === 2 && isVerb(first) ? [first, '--help'] : [...argv];
}

function addVerb(
  program: Command,
  verb: Verb,
  act: (operands: readonly string[], values: RawValues) => void,
): void {
  const { operand } = VERB_TEXTS[verb];
  const command = program.command(verb).allowExcessArguments(false).helpOption(false);
  for (const name of flagsOf(verb)) command.addOption(optionOf(name));
  if (flagsOf(verb).includes('progress')) command.addOption(new Option('--no-progress'));
  if (operand !== undefined) command.argument(operand);
  command.action((...args: unknown[]) => {
    const [given] = args;
    const operands = operand === undefined ? [] : [given].flat();
    act(
      operands.filter((word) => typeof word === 'string'),
      rawValues(command, verb),
    );
  });
}

function optionOf(name: FlagName): Option {
  const { value } = flagSpec(name);
  if (value === undefined) return new Option(`--${name}`);
  return new Option(`--${name} <${value}>`).argParser(
    (text: string, before: readonly string[] | undefined) => [...(before ?? []), text],
  );
}

function rawValues(command: Command, verb: Verb): RawValues {
  const values: RawValues = {};
  for (const name of flagsOf(verb)) {
    if (command.getOptionValueSource(camelCase(name)) !== 'cli') continue;
    const value: unknown = command.getOptionValue(camelCase(name));
    if (name === 'progress' && value === false) values[name] = ['none'];
    else values[name] = Array.isArray(value) ? value.map(String) : [String(value)];
  }
  return verb === 'plot' ? withChartFile(values) : values;
}

/** `--out` is the lake. For `plot`, a file name like `chart.html` there means the file of the chart, unless a folder has this name. */
function withChartFile(values: RawValues): RawValues {
  const { out = [], ...others } = values;
  const pages = out.filter((path) => /\.html?$/i.test(path) && !isFolder(path));
  const folders = out.filter((path) => !pages.includes(path));
  return {
    ...others,
    ...(pages.length > 0 && { html: pages }),
    ...(folders.length > 0 && { out: folders }),
  };
}
