/** Command lines that are not understood, in our form: what was wrong, and a line that works. */
import type { CommanderError } from 'commander';
import { nearest } from '../did-you-mean.js';
import { usage } from '../errors.js';
import { flagSpec, flagsOf, VERBS } from '../options/flags.js';
import type { FlagName, Verb } from '../options/flags.js';
import { VERB_TEXTS } from './verbs.js';

/** A line that does something useful for somebody who does not know more yet. */
const FIRST_LINE = ['vision', '--symbols', 'BTCUSDT', '--days', '1'];

/** No verb, or an unknown one. */
export function refuseWord(word: string | undefined): never {
  if (word === undefined)
    throw usage('no command given', 'cryptodl --help shows what there is', { command: FIRST_LINE });
  const verb = VERBS.find((name) => VERB_TEXTS[name].aka.includes(word)) ?? nearest(word, VERBS);
  if (verb !== undefined)
    throw usage(`"${word}" is no command`, `did you mean ${verb}?`, { words: { [word]: verb } });
  if (/^[\p{Lu}\d]{5,}(_\w+)?$/u.test(word))
    throw usage(`"${word}" is no command`, 'symbols are given with --symbols', {
      verb: 'vision',
      words: { [word]: null },
      flags: { symbols: word },
    });
  throw usage(`"${word}" is no command`, `commands are ${VERBS.join(', ')}`, { command: FIRST_LINE });
}

export function refuseArguments(error: CommanderError, argv: readonly string[]): Error {
  const [first = ''] = error.message.replace(/^error: /, '').split('\n');
  const [word = '-'] = argv;
  const verb = VERBS.find((name) => name === word);
  if (verb === undefined && !word.startsWith('-')) refuseWord(word);
  switch (error.code) {
    case 'commander.unknownOption':
      return unknownFlag(first, verb, argv);
    case 'commander.optionMissingArgument':
      return missingValue(first, verb);
    case 'commander.excessArguments':
      return excessWords(first, verb, argv);
    default:
      return usage(first, verb === undefined ? 'cryptodl --help' : (VERB_TEXTS[verb].examples[0] ?? ''));
  }
}

function unknownFlag(message: string, verb: Verb | undefined, argv: readonly string[]): Error {
  const typed = /'(-[^']*)'/.exec(message)?.[1] ?? '';
  const word = typed.split('=')[0] ?? '';
  if (verb === undefined) {
    const isFlag = flagsOf('vision').some((name) => word === `--${name}`);
    if (isFlag)
      return usage('no command given', 'flags follow a command, for example vision', { verb: 'vision' });
    return usage(message, 'cryptodl --help shows what there is', { command: FIRST_LINE });
  }
  const names = flagsOf(verb);
  const plain = word.replace(/^-+/, '');
  const known =
    names.find((name) => flagSpec(name).aka?.includes(plain) === true) ??
    names.find((name) => name === nearest(plain, names));
  if (known !== undefined)
    return usage(`${verb} has no flag ${word}`, `did you mean --${known}?`, renaming(known, word, argv));
  const other = VERBS.find((candidate) => flagsOf(candidate).some((name) => name === plain));
  const hint =
    other === undefined ? `cryptodl ${verb} --help shows its flags` : `${word} is a flag of ${other}`;
  return usage(`${verb} has no flag ${word}`, hint, without(word, argv));
}

/** A switch takes the value of the word it replaces with it; a flag needs one. */
function renaming(
  name: FlagName,
  word: string,
  argv: readonly string[],
): { words: Record<string, string | null>; flags?: Record<string, string> } {
  const hasValue = valueAfter(word, argv) !== undefined || argv.some((item) => item.startsWith(`${word}=`));
  if (flagSpec(name).value === undefined || hasValue) return { words: { [word]: `--${name}` } };
  return {
    words: { [word]: null },
    flags: { [name]: flagSpec(name).default ?? flagSpec(name).example ?? '' },
  };
}

function without(word: string, argv: readonly string[]): { words: Record<string, null> } {
  const value = valueAfter(word, argv);
  return { words: { [word]: null, ...(value === undefined ? {} : { [value]: null }) } };
}

function valueAfter(word: string, argv: readonly string[]): string | undefined {
  const next = argv[argv.indexOf(word) + 1];
  return argv.includes(word) && next !== undefined && !next.startsWith('-') ? next : undefined;
}

function missingValue(message: string, verb: Verb | undefined): Error {
  const name = /--([a-z-]+)/.exec(message)?.[1] ?? '';
  const known = flagsOf(verb ?? 'vision').find((candidate) => candidate === name);
  const value = known === undefined ? undefined : (flagSpec(known).default ?? flagSpec(known).example);
  return usage(
    `--${name} needs a value`,
    value === undefined ? undefined : `--${name} ${value}`,
    value === undefined ? undefined : { flags: { [name]: value } },
  );
}

function excessWords(message: string, verb: Verb | undefined, argv: readonly string[]): Error {
  if (verb !== 'vision') return usage(message, verb === undefined ? undefined : VERB_TEXTS[verb].examples[0]);
  const extra = argv.filter(
    (word, index) => !word.startsWith('-') && word !== verb && !isValue(argv[index - 1]),
  );
  return usage(`vision takes no operand, "${extra[0] ?? ''}" is one too many`, undefined, {
    words: Object.fromEntries(extra.map((word) => [word, null])),
    flags: { symbols: extra.join(',') },
  });
}

/** Whether the word after this one is its value. */
function isValue(before: string | undefined): boolean {
  const name = flagsOf('vision').find((candidate) => before === `--${candidate}`);
  return name !== undefined && flagSpec(name).value !== undefined;
}
