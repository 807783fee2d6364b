/** The command line (commander), made from the flag table. */
import { Command, CommanderError, Option } from 'commander';
import { VERBS } from '../options/flag-spec.js';
import type { Verb } from '../options/flag-spec.js';
import { defaultOf, FLAG_NAMES, flagsOf, flagSpec, isSwitch } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { OTHER_FLAGS } from '../options/other-flags.js';
import type { RawValues } from '../options/resolve.js';
import { usage } from '../model/errors.js';
import { TOOL_VERSION } from '../model/version.js';
import { didYouMean } from '../text/did-you-mean.js';
import { helpText } from './help.js';
import type { Tier } from './help.js';
import { readOperands } from './operands.js';
import { kebabCase, readVerb } from './read-verb.js';
import { VERB_TEXTS } from './verbs.js';

/** A parsed command line. */
export interface Invocation {
  readonly verb: Verb;
  readonly operand: string | undefined;
  readonly values: RawValues;
  /** The command line that `schedule` repeats. */
  readonly behind: readonly string[];
}

/** Parses a command line. Undefined after help or the version was printed. Throws usage errors. */
export function parseCommandLine(
  argv: readonly string[],
  io: { readonly stdout: { readonly write: (text: string) => unknown; readonly columns?: number } },
): Invocation | undefined {
  const line = withPlainFlags(argv);
  const [first = '', second] = line;
  if (['--version', '-V', 'version'].includes(first) || (first === '-v' && second === undefined)) {
    io.stdout.write(`${TOOL_VERSION}\n`);
    return undefined;
  }
  const isOfProgram = first === 'help' || HELP_FLAGS.has(first);
  const named = isOfProgram && (second === undefined || second.startsWith('-'));
  if (named) return printHelp(undefined, line, io);
  const { verb, words, isImplied } = readVerb(isOfProgram ? line.slice(1) : line);
  const end = words.indexOf('--');
  const own = end < 0 ? words : words.slice(0, end);
  if (isOfProgram || own.some((word) => HELP_FLAGS.has(word)) || (own[0] === 'help' && own.length === 1))
    return printHelp(verb, own, io);
  const { loose, given } = parseWords(verb, words);
  if (VERB_TEXTS[verb].behind !== undefined)
    return { verb, operand: undefined, values: mergedValues(verb, given), behind: loose };
  const late = isImplied ? VERBS.find((known) => loose.includes(known)) : undefined;
  if (late !== undefined) throw usage(`the command ${late} comes first`, `cryptodl ${late} [flags]`);
  const { operand, values } = readOperands(verb, loose);
  if (operand === undefined && VERB_TEXTS[verb].operand?.startsWith('<') === true)
    throw usage(
      `${verb} needs a ${VERB_TEXTS[verb].operand.slice(1, -1)}`,
      `for example: ${VERB_TEXTS[verb].examples[0] ?? ''}`,
    );
  const positional = values.map(([flag, text]): Given => ({ flag, text, typed: text }));
  return { verb, operand, values: mergedValues(verb, [...given, ...positional]), behind: [] };
}

const HELP_FLAGS: ReadonlySet<string> = new Set(['--help', '-h', '--help-all']);

function printHelp(
  verb: Verb | undefined,
  words: readonly string[],
  { stdout }: Parameters<typeof parseCommandLine>[1],
): undefined {
  const tier: Tier = words.includes('--help-all') ? 'all' : 'brief';
  stdout.write(helpText(verb, tier, stdout.columns));
}

/** A value of a flag, with the name under which it was typed. */
interface Given {
  readonly flag: FlagName;
  readonly text: string;
  readonly typed: string;
}

/** The words without a flag, and the values of the flags. */
function parseWords(verb: Verb, words: readonly string[]): { loose: string[]; given: Given[] } {
  const given: Given[] = [];
  const command = new Command(verb)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption(false)
    .showSuggestionAfterError(false)
    .argument('[words...]');
  // The flags after the first word are flags of the command that `schedule` repeats.
  if (VERB_TEXTS[verb].behind !== undefined) command.passThroughOptions();
  for (const { option, read } of optionsOf(verb)) {
    command.addOption(option);
    command.on(`option:${option.name()}`, (value?: string) => {
      given.push(...read(option.long ?? option.short ?? '', value));
    });
  }
  const [, operand] = /^[<[](\w+)/.exec(VERB_TEXTS[verb].operand ?? '') ?? [];
  const named: string[] = [];
  // `schema --dataset klines` is `schema klines`.
  if (operand !== undefined && command.options.every(({ long }) => long !== `--${operand}`)) {
    command.addOption(new Option(`--${operand} <VALUE>`).hideHelp());
    command.on(`option:${operand}`, (value?: string) => named.push(valueAfter(`--${operand}`, value)));
  }
  let loose: string[] = [];
  command.action((found: string[]) => {
    loose = found;
  });
  try {
    command.parse([...words], { from: 'user' });
  } catch (error) {
    throw error instanceof CommanderError ? refusalOf(error, verb) : error;
  }
  return { loose: [...named, ...loose], given };
}

interface ReadOption {
  readonly option: Option;
  readonly read: (typed: string, value: string | undefined) => Given[];
}

/** The flags of a verb, and hidden options for their other names and for flags of other tools. */
function optionsOf(verb: Verb): ReadOption[] {
  const flags = flagsOf(verb);
  const options = flags.map((flag) => ({
    option: optionOf([flag, flagSpec(flag).short], flag),
    read: reader(flag),
  }));
  const names = new Set<string>(flags.flatMap((flag) => [flag, flagSpec(flag).short ?? '']));
  const add = (name: string | undefined, hidden: (name: string) => ReadOption): void => {
    if (name === undefined || names.has(name)) return;
    names.add(name);
    options.push(hidden(name));
  };
  for (const flag of flags)
    for (const name of flagSpec(flag).aka ?? []) {
      // `verify --csv` would only select series, and the user expects the form of the output.
      if (isValueName(flag, name) && flagSpec(flag).narrows?.includes(verb) === true) continue;
      add(name, () => ({ option: optionOf([name], flag, name).hideHelp(), read: reader(flag, name) }));
    }
  for (const name of Object.keys(OTHER_FLAGS)) add(name, otherOption);
  for (const flag of flags)
    add(flagSpec(flag).short?.toUpperCase(), (name) => ({
      option: optionOf([name], flag).hideHelp(),
      read: reader(flag),
    }));
  return options;
}

/** `-s, --symbols <LIST>`. A name like `csv` of `--format` is a switch for this value. */
function optionOf(names: readonly (string | undefined)[], flag: FlagName, value?: string): Option {
  const takesValue = !isSwitch(flag) && !isValueName(flag, value);
  return new Option(optionText(names, takesValue ? flagSpec(flag).value : undefined));
}

function optionText(names: readonly (string | undefined)[], value: string | undefined): string {
  const shown = names.flatMap((name) =>
    name === undefined ? [] : [name.length === 1 ? `-${name}` : `--${name}`],
  );
  return `${shown.sort((a, b) => a.length - b.length).join(', ')}${value === undefined ? '' : ` <${value}>`}`;
}

function isValueName(flag: FlagName, name: string | undefined): boolean {
  return name !== undefined && flagSpec(flag).choices?.includes(name) === true;
}

function reader(flag: FlagName, name?: string): ReadOption['read'] {
  return (typed, value) => [
    {
      flag,
      typed,
      text: isValueName(flag, name) ? (name ?? '') : isSwitch(flag) ? 'true' : valueAfter(typed, value, flag),
    },
  ];
}

function otherOption(name: string): ReadOption {
  const { isSwitch: isAlone = false, valuesOf, hint } = OTHER_FLAGS[name] ?? { valuesOf: () => undefined };
  return {
    option: new Option(optionText([name], isAlone ? undefined : 'VALUE')).hideHelp(),
    read: (typed, value) => {
      const text = isAlone ? '' : valueAfter(typed, value);
      const values = valuesOf(text);
      if (values === undefined) throw usage(`${[typed, text].join(' ').trim()} has no meaning here`, hint);
      return FLAG_NAMES.flatMap((flag) => {
        const found = values[flag];
        return found === undefined ? [] : [{ flag, typed, text: found }];
      });
    },
  };
}

/** The value of an option: `-d=7` is `-d 7`. Throws a usage error for a flag in place of the value. */
function valueAfter(typed: string, value = '', flag?: FlagName): string {
  if (/^--?[a-z]/i.test(value)) throw noValue(typed, flag);
  return value.replace(/^=/, '');
}

function noValue(typed: string, flag: FlagName | undefined, verb?: Verb): Error {
  const value = flag && ((verb && defaultOf(flag, verb)) ?? flagSpec(flag).default ?? flagSpec(flag).example);
  return usage(`${typed} needs a value`, value && `for example ${typed} ${value}`);
}

/** Several values of a list are joined. Throws a usage error for different values of another option under two names. */
function mergedValues(verb: Verb, given: readonly Given[]): RawValues {
  const values: RawValues = {};
  for (const { flag, text, typed } of given) {
    if (!flagsOf(verb).includes(flag))
      throw usage(`${verb} has no flag ${typed}`, `it means --${flag}, which ${verb} does not have`);
    const other = given.find((one) => one.flag === flag && one.typed !== typed && one.text !== text);
    if (other !== undefined && flagSpec(flag).list === undefined)
      throw usage(
        `${typed} and ${other.typed} are the same option with different values`,
        'give one of them',
      );
    values[flag] = [...(values[flag] ?? []), text];
  }
  return values;
}

/** The flags in their usual spelling: `--outDir`, `--OUT_DIR`, `-outdir` and a long dash of a word processor. */
function withPlainFlags(argv: readonly string[]): string[] {
  const known = new Set<string>([
    ...FLAG_NAMES.flatMap((name) => [name, ...(flagSpec(name).aka ?? [])]),
    ...Object.keys(OTHER_FLAGS),
  ]);
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  return argv.map((word, at) => {
    const [, name = '', value = ''] = /^[-\u2010-\u2015\u2212]{1,2}([a-z][\w-]+)(=.*)?$/is.exec(word) ?? [];
    const plain = kebabCase(name);
    return at < end && known.has(plain) ? `--${plain}${value}` : word;
  });
}

const MOST_OWNERS = 4;

/** The usage error for a line that commander refuses. */
function refusalOf({ code, message }: CommanderError, verb: Verb): Error {
  const first = message.replace(/^error: /, '');
  const [typed = first] = /(?<=')-.*(?=')/.exec(first) ?? [];
  if (typed.startsWith('-='))
    return usage(`"${typed.slice(1)}": a switch takes no value`, 'write the flag alone');
  if (code === 'commander.optionMissingArgument') {
    const name = /(--?[\w-]+) </.exec(typed)?.[1] ?? typed;
    return noValue(
      name,
      FLAG_NAMES.find((flag) => `--${flag}` === name),
      verb,
    );
  }
  if (code !== 'commander.unknownOption') return usage(first, `see cryptodl ${verb} --help`);
  const [word = ''] = typed.split('=');
  const command = VERBS.find((known) => word === `--${known}`);
  const flag = FLAG_NAMES.find((name) => word === `--${name}` || word === `-${flagSpec(name).short ?? ''}`);
  if (flag === undefined && command !== undefined)
    return usage(`${verb} has no flag ${word}`, `${command} is a command: cryptodl ${command}`);
  if (flag === undefined)
    return usage(
      `${verb} has no flag ${word}`,
      didYouMean(
        word,
        flagsOf(verb).map((name) => `--${name}`),
      ) ?? `see cryptodl ${verb} --help`,
    );
  if (flagsOf(verb).includes(flag)) return usage(`${word} takes no value`, `write ${word}`);
  const owners = VERBS.filter((name) => flagsOf(name).includes(flag));
  const place =
    verb === 'run'
      ? '; write it into the file of jobs'
      : VERB_TEXTS[verb].behind === undefined
        ? ''
        : '; write it after the command';
  const more = owners.length > MOST_OWNERS ? ' and others' : '';
  return usage(
    `${verb} has no flag ${word}`,
    `${word} is a flag of ${owners.slice(0, MOST_OWNERS).join(', ')}${more}${place}`,
  );
}
