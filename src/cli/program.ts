/** The command line (commander): its words, and the flags of the flag table with all their names. */
import { Command, CommanderError, Option } from 'commander';
import { usage } from '../model/errors.js';
import { TOOL_VERSION } from '../model/version.js';
import { flagSpec, isSwitch, type FlagName } from '../plan/options/flags.js';
import type { Invocation, RawValues } from '../plan/options/resolve.js';
import { flagsOf, type VerbSpec, type VerbSpecs } from '../plan/options/verb-spec.js';
import { didYouMean } from '../text/did-you-mean.js';
import { helpText, type Tier } from './help.js';

/** Parses a command line. Undefined after help or the version was printed. Throws usage errors. */
export function parseCommandLine(
  argv: readonly string[],
  verbs: VerbSpecs,
  stdout: { readonly write: (text: string) => unknown; readonly columns?: number },
): Invocation | undefined {
  const [first = '', second] = argv;
  if (['--version', '-V', 'version'].includes(first) || (first === '-v' && second === undefined)) {
    stdout.write(`${TOOL_VERSION}\n`);
    return undefined;
  }
  const isOfProgram = first === 'help' || HELP_FLAGS.has(first);
  const isHelpOfProgram = isOfProgram && (second === undefined || second.startsWith('-'));
  const printHelp = (verb: VerbSpec | undefined, given: readonly string[]): undefined => {
    const tier: Tier = given.includes('--help-all') ? 'all' : 'brief';
    stdout.write(helpText(verb, verbs, tier, stdout.columns));
  };
  if (isHelpOfProgram) return printHelp(undefined, argv);
  const { verb, words } = readVerb(isOfProgram ? argv.slice(1) : argv, verbs);
  const end = words.indexOf('--');
  const own = end < 0 ? words : words.slice(0, end);
  if (isOfProgram || own.some((word) => HELP_FLAGS.has(word)) || (own[0] === 'help' && own.length === 1))
    return printHelp(verb, own);
  const { loose, given } = parseWords(verb, words);
  if (verb.behind !== undefined) return { verb, operand: undefined, values: rawValues(given), behind: loose };
  const { operand, values } = readOperands(verb, loose);
  if (operand === undefined && verb.operand?.startsWith('<') === true)
    throw usage(
      `${verb.name} needs a ${verb.operand.slice(1, -1)}`,
      `for example: ${verb.examples[0] ?? ''}`,
    );
  return { verb, operand, values: rawValues([...given, ...values]), behind: [] };
}

const HELP_FLAGS: ReadonlySet<string> = new Set(['--help', '-h', '--help-all']);

type Given = readonly [flag: FlagName, text: string];

/** The words without a flag, and the values of the flags. */
function parseWords(verb: VerbSpec, words: readonly string[]): { loose: string[]; given: Given[] } {
  const given: Given[] = [];
  const command = new Command(verb.name)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption(false)
    .argument('[words...]');
  // The flags after the first word are flags of the command that `schedule` repeats.
  if (verb.behind !== undefined) command.passThroughOptions();
  for (const [name, { flag, fixed }] of namedFlags(verb)) {
    const typed = name.length === 1 ? `-${name}` : `--${name}`;
    const option = new Option(fixed === undefined ? `${typed} <value>` : typed);
    command.addOption(option).on(`option:${option.name()}`, (value: string) => {
      if (fixed === undefined && (value === '' || /^--?[a-z]/i.test(value))) throw needsValue(verb, typed);
      given.push([flag, fixed ?? value]);
    });
  }
  try {
    command.parse([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const [typed = ''] = /(?<=')-[^ =']+/.exec(error.message) ?? [];
    if (error.code !== 'commander.optionMissingArgument') throw unknownFlag(verb, typed);
    throw needsValue(verb, typed);
  }
  return { loose: command.args, given };
}

const needsValue = (verb: VerbSpec, typed: string): Error =>
  usage(`${typed} needs a value`, `see cryptodl ${verb.name} --help`);

/** The names of all flags. `fixed`: the value of a name without one, as of a switch. */
function namedFlags(verb: VerbSpec) {
  const named = new Map<string, { readonly flag: FlagName; readonly fixed: string | undefined }>();
  const add = (name: string, flag: FlagName, fixed = isSwitch(flag) ? 'true' : undefined): void => {
    if (!named.has(name)) named.set(name, { flag, fixed });
  };
  for (const name of flagsOf(verb)) for (const own of [name, flagSpec(name).short ?? name]) add(own, name);
  for (const name of flagsOf(verb)) {
    const { aka = [], choices } = flagSpec(name);
    for (const other of aka) {
      if (choices?.includes(other) !== true) add(other, name);
      // `--csv` is `--format csv`. `verify --csv` would only select series, and the user expects the form of the output.
      else if (verb.meanings?.[name]?.narrows !== true) add(other, name, other);
    }
  }
  return named;
}

/** Several values of a flag stay in their order. */
function rawValues(given: readonly Given[]): RawValues {
  const values: RawValues = {};
  for (const [flag, text] of given) values[flag] = [...(values[flag] ?? []), text];
  return values;
}

function unknownFlag(verb: VerbSpec, typed: string): Error {
  const names = flagsOf(verb).map((name) => `--${name}`);
  return usage(
    `${verb.name} has no flag ${typed}`,
    didYouMean(typed, names) ?? `see cryptodl ${verb.name} --help`,
  );
}

/** The verb of a line, and the words for it. Throws a usage error for an unknown command. */
function readVerb(line: readonly string[], verbs: VerbSpecs) {
  const all = Object.values(verbs);
  const [first = ''] = line;
  for (const count of [2, 1]) {
    const typed = line.slice(0, count).join(' ');
    const verb = all.find((known) => known.name === typed || known.aka.includes(typed));
    if (verb !== undefined) return { verb, words: line.slice(count) };
  }
  if (first === '') throw usage('no command given', 'for example: cryptodl vision -s BTCUSDT -d 1');
  const names = all.map(({ name }) => name);
  throw usage(
    `"${first}" is not a command`,
    didYouMean(first, names) ?? 'cryptodl --help shows the commands',
  );
}

/** The operand, and the words that are values of flags. Throws a usage error for a word without a meaning. */
function readOperands(verb: VerbSpec, words: readonly string[]) {
  const { operand, examples } = verb;
  const hasOperand = operand !== undefined;
  const values = words.slice(hasOperand ? 1 : 0).map((word) => {
    const flag = flagOf(verb, word);
    if (flag === undefined)
      throw usage(
        `${verb.name} takes ${hasOperand ? 'one' : 'no'} argument: "${word}" is one too many`,
        `for example: ${examples[0] ?? ''}`,
      );
    return [flag, word] as const;
  });
  return { operand: hasOperand ? words[0] : undefined, values };
}

/** A page of HTML, a path, or a symbol: a word with small letters is a mistake. */
function flagOf(verb: VerbSpec, word: string): FlagName | undefined {
  const isPath = /^(?:\.{1,2}$|~|s3:)|\//i.test(word) && !/^[A-Z\d]+\/[A-Z]/.test(word);
  const fitting: readonly FlagName[] = /\.html?$/i.test(word)
    ? ['html']
    : isPath
      ? ['target', 'out']
      : /^@|^\P{Ll}+$/u.test(word)
        ? ['symbols']
        : [];
  return fitting.find((name) => flagsOf(verb).includes(name));
}
