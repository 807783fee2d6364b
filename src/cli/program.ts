/** The command line (commander), made from the flag table. */
import { Command, CommanderError, Option } from 'commander';
import { isVerb, verbOf } from './command-words.js';
import { GROUPS, VERBS } from '../options/flag-spec.js';
import { camelCase, defaultOf, docOf, environmentName, flagSpec, flagsOf } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import type { RawValues } from '../options/resolve.js';
import { TOOL_VERSION } from '../model/version.js';
import { refuseArguments, refuseMissingValues, refuseVerb } from './explain-arguments.js';
import { VERB_TEXTS } from './verbs.js';

/** A parsed command line. */
export interface Invocation {
  readonly verb: Verb;
  readonly operand: string | undefined;
  readonly values: RawValues;
  /** The words after `--`: the command line that `schedule` repeats. */
  readonly behind: readonly string[];
}

/** Whether a command line can be parsed: the verb exists and accepts all flags of the line. */
export function isValidLine(argv: readonly string[]): boolean {
  try {
    return parseCommandLine(argv, { stdout: { write: () => true } }) !== undefined;
  } catch {
    return false;
  }
}

/** Parses a command line. Undefined after help or the version was printed. Throws usage errors. */
export function parseCommandLine(
  argv: readonly string[],
  io: { readonly stdout: { readonly write: (text: string) => unknown } },
): Invocation | undefined {
  let invocation: Invocation | undefined;
  const { own, behind } = partsOf(argv);
  const program = new Command('cryptodl')
    .description('Bulk crypto market data, complete and verified, in a lake you can query.')
    .usage('COMMAND [flags]')
    .version(TOOL_VERSION)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: () => undefined })
    .helpOption('-h, --help', 'show this help; cryptodl COMMAND --help shows the flags')
    .helpCommand(false)
    .configureHelp({ subcommandTerm: (command) => termOf(command.name()) })
    .argument('[command]')
    .addHelpText('after', `\n${examplesText(VERBS.flatMap((verb) => VERB_TEXTS[verb].examples.slice(0, 1)))}`)
    .action(() => {
      refuseVerb([]);
    })
    .hook('preSubcommand', (_, command) => {
      const name = command.name();
      if (isVerb(name)) addFlags(command, name);
    });
  for (const verb of VERBS) {
    addVerb(program, verb, (operand, values) => {
      invocation = { verb, operand, values, behind };
    });
  }
  refuseMissingValues(argv);
  const line = helpAsFlag(own);
  const [first = '-'] = line;
  // Commander would print the help of the program for an unknown word with --help.
  if (!first.startsWith('-') && !isVerb(first)) refuseVerb(line);
  try {
    program.parse(line, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw refuseArguments(error, argv);
  }
  return invocation;
}

/** The words before and after `--`, for a verb that takes another command; for other verbs, `own` has all words. */
function partsOf(argv: readonly string[]): { own: readonly string[]; behind: readonly string[] } {
  const verb = verbOf(argv);
  const at = verb === undefined || VERB_TEXTS[verb].behind === undefined ? -1 : argv.indexOf('--');
  return at < 0 ? { own: argv, behind: [] } : { own: argv.slice(0, at), behind: argv.slice(at + 1) };
}

/** Turns `help`, `help vision` and `vision help` into the flag. */
function helpAsFlag(argv: readonly string[]): string[] {
  const [first = '', second] = argv;
  if (first === 'help') return second === undefined ? ['--help'] : [second, '--help'];
  return second === 'help' && argv.length === 2 && isVerb(first) ? [first, '--help'] : [...argv];
}

function examplesText(examples: readonly string[]): string {
  return `Examples:\n${examples.map((line) => `  ${line}`).join('\n')}`;
}

/** The usage of a verb, for example `run [options] <file>`. Works before the flags are added to the command. */
function termOf(name: string): string {
  if (!isVerb(name)) return name;
  const { operand } = VERB_TEXTS[name];
  return [
    name,
    ...(flagsOf(name).length > 0 ? ['[options]'] : []),
    ...(operand === undefined ? [] : [operand]),
  ].join(' ');
}

function addVerb(
  program: Command,
  verb: Verb,
  act: (operand: string | undefined, values: RawValues) => void,
): void {
  const { operand, behind, doc } = VERB_TEXTS[verb];
  const command = program
    .command(verb)
    .description(doc)
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'show this help');
  if (operand !== undefined) command.argument(operand);
  if (behind !== undefined) command.usage(`[options] -- ${behind}`);
  command.action((...args: unknown[]) => {
    const [given] = args;
    act(operand !== undefined && typeof given === 'string' ? given : undefined, rawValues(command, verb));
  });
}

/** Only the typed verb gets its flags: adding the flags of all verbs takes longer than parsing. */
function addFlags(command: Command, verb: Verb): void {
  for (const group of GROUPS) {
    for (const name of flagsOf(verb).filter((candidate) => flagSpec(candidate).group === group))
      command.addOption(optionOf(name, verb));
  }
  if (flagsOf(verb).includes('progress')) command.addOption(new Option('--no-progress').hideHelp());
  command.addHelpText('after', `\n${examplesText(VERB_TEXTS[verb].examples)}${sourcesText(verb)}`);
}

/** The last line of the help: other ways to give a flag. */
function sourcesText(verb: Verb): string {
  const [first] = flagsOf(verb);
  if (first === undefined) return '';
  const shown = flagsOf(verb).find((name) => name === 'archive-url') ?? first;
  const key = flagsOf(verb).includes('config') ? ' and a key in --config FILE' : '';
  return `\n\nEvery flag is also an environment variable (--${shown}: ${environmentName(shown)})${key}.`;
}

function optionOf(name: FlagName, verb: Verb): Option {
  const spec = flagSpec(name);
  const preset = spec.narrows?.includes(verb) === true ? undefined : (defaultOf(name, verb) ?? spec.unset);
  const shown = preset === undefined ? '' : ` (default: ${preset})`;
  const option = new Option(
    `--${name}${spec.value === undefined ? '' : ` <${spec.value}>`}`,
    `${docOf(name, verb)}${shown}`,
  );
  option.helpGroup(`${spec.group}:`);
  if (spec.value !== undefined)
    option.argParser((text: string, before: readonly string[] | undefined) => [...(before ?? []), text]);
  return option;
}

function rawValues(command: Command, verb: Verb): RawValues {
  const values: RawValues = {};
  for (const name of flagsOf(verb)) {
    if (command.getOptionValueSource(camelCase(name)) !== 'cli') continue;
    const value: unknown = command.getOptionValue(camelCase(name));
    if (name === 'progress' && value === false) values[name] = ['none'];
    else values[name] = Array.isArray(value) ? value.map(String) : [String(value)];
  }
  return values;
}
