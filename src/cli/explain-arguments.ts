/** Usage errors for command lines that cannot be parsed: the mistake, and a corrected line. */
import type { CommanderError } from 'commander';
import { nearest } from '../text/did-you-mean.js';
import { CryptodlError, usage } from '../model/errors.js';
import { noConfigFile } from '../options/jobs-file.js';
import { VERBS } from '../options/flag-spec.js';
import { flagSpec, flagsOf, isSwitch } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import { isVerb, textsOf, verbOf, wordsOf } from './command-words.js';
import type { Word } from './command-words.js';
import { VERB_TEXTS } from './verbs.js';

/** A useful first command for a new user. */
const FIRST_LINE = ['vision', '--symbols', 'BTCUSDT', '--days', '1'];

/** Throws the usage error for a missing or unknown verb. The first word of `argv` is taken as the verb. */
export function refuseVerb(argv: readonly string[]): never {
  const [word, ...rest] = argv;
  if (word === undefined)
    throw usage('no command given', 'cryptodl --help lists the commands', { command: FIRST_LINE });
  const owner = VERBS.find((name) => VERB_TEXTS[name].choices?.includes(word) === true);
  if (owner !== undefined)
    throw usage(`"${word}" is no command`, `did you mean ${owner} ${word}?`, { argv: [owner, ...argv] });
  const verb = VERBS.find((name) => VERB_TEXTS[name].aka.includes(word)) ?? nearest(word, VERBS);
  const known = VERBS.find((name) => name === verb);
  if (known !== undefined)
    throw usage(`"${word}" is no command`, `did you mean ${known}?`, {
      argv: folded([known, ...rest], known),
    });
  if (/^[\p{Lu}\d]{5,}(_\w+)?$/u.test(word))
    throw usage(`"${word}" is no command`, 'symbols are given with --symbols', {
      argv: folded(['vision', ...argv], 'vision'),
    });
  throw usage(`"${word}" is no command`, `commands are ${VERBS.join(', ')}`, { command: FIRST_LINE });
}

/** Throws a usage error for a flag without its value, and for a flag that begins with a long dash. */
export function refuseMissingValues(argv: readonly string[]): void {
  const verb = verbOf(argv);
  if (verb === undefined) return;
  const words = wordsOf(argv, verb);
  refuseLongDash(verb, words);
  for (const [at, { kind, flag, text }] of words.entries()) {
    if (kind !== 'flag' || flag === undefined || isSwitch(flag) || text !== `--${flag}`) continue;
    if (words[at + 1]?.kind === 'value') continue;
    const value = flagSpec(flag).default ?? flagSpec(flag).example;
    const next = words[at + 1]?.text ?? '';
    // A negative number looks like a flag.
    const isNumber = /^-\d/.test(next);
    const rest = words.slice(isNumber ? at + 2 : at + 1);
    const filled = [...textsOf(words.slice(0, at + 1)), value ?? '', ...textsOf(rest)];
    if (isNumber) refuseNumber(flag, next, filled);
    throw usage(`--${flag} needs a value`, undefined, value === undefined ? undefined : { argv: filled });
  }
}

/** Throws the error of the flag itself, if the flag does not accept the negative number. */
function refuseNumber(flag: FlagName, value: string, filled: readonly string[]): void {
  try {
    flagSpec(flag).parse(value, `--${flag}`);
  } catch (error) {
    if (!(error instanceof CryptodlError)) throw error;
    const { message, hint, correction } = error;
    const better = correction?.value === undefined ? {} : { flags: { [flag]: correction.value } };
    throw usage(message, hint, { argv: filled, ...better });
  }
}

/** Word processors replace the two hyphens of a flag by a dash. */
function refuseLongDash(verb: Verb, words: readonly Word[]): void {
  const flagIn = (text: string): string | undefined => {
    const [, name = '', value = ''] =
      /^[\u2010-\u2015\u2212][-\u2010-\u2015\u2212]?([^=]+)(=.*)?$/s.exec(text) ?? [];
    return flagsOf(verb).some((flag) => flag === name) ? `--${name}${value}` : undefined;
  };
  const found = words.find(({ kind, text }) => kind === 'operand' && flagIn(text) !== undefined)?.text;
  if (found === undefined) return;
  throw usage(`"${found}" begins with a long dash`, `write ${flagIn(found)?.split('=')[0] ?? ''}`, {
    argv: textsOf(words).map((text) => flagIn(text) ?? text),
  });
}

/** The usage error for a command line that commander refuses. */
export function refuseArguments(error: CommanderError, argv: readonly string[]): Error {
  const [first = ''] = error.message.replace(/^error: /, '').split('\n');
  const verb = verbOf(argv);
  if (verb === undefined) {
    const isOfVision = flagsOf('vision').some((name) => argv[0]?.split('=')[0] === `--${name}`);
    const line = isOfVision ? { argv: ['vision', ...argv] } : { command: FIRST_LINE };
    return usage(isOfVision ? 'no command given' : first, 'a command comes first, for example vision', line);
  }
  const words = wordsOf(argv, verb);
  if (words[0]?.kind !== 'verb') {
    const rest = textsOf(words.filter(({ kind }) => kind !== 'verb'));
    return usage(`the command ${verb} comes first`, undefined, { argv: [verb, ...rest] });
  }
  const inner = words.find(({ kind, text }) => kind === 'operand' && isVerb(text));
  if (VERB_TEXTS[verb].behind !== undefined && inner !== undefined && !argv.includes('--')) {
    const at = words.indexOf(inner);
    const line = [...textsOf(words.slice(0, at)), '--', ...textsOf(words.slice(at))];
    return usage(`${verb}: write -- before the command`, undefined, { argv: line });
  }
  const unknown = words.find(({ kind }) => kind === 'unknown-flag');
  const valued = words.find(
    ({ kind, flag, text }) => kind === 'flag' && flag !== undefined && isSwitch(flag) && text.includes('='),
  );
  if (unknown !== undefined) {
    const { message, hint, argv: line } = explainUnknown(verb, words, unknown);
    return usage(message, hint, { argv: withKnownFlags(line) });
  }
  if (valued?.flag !== undefined)
    return usage(`--${valued.flag} takes no value`, undefined, {
      argv: textsOf(words).map((text) => (text === valued.text ? `--${valued.flag ?? ''}` : text)),
    });
  if (error.code === 'commander.excessArguments') return excessWords(verb, words);
  return usage(first, VERB_TEXTS[verb].examples[0]);
}

/** The message about an unknown flag, and the line in which that flag is corrected, moved or removed. */
interface UnknownFlag {
  readonly message: string;
  readonly hint?: string;
  readonly argv: readonly string[];
}

/** The line after `explainUnknown` has corrected, moved or removed each unknown flag. */
function withKnownFlags(argv: readonly string[]): readonly string[] {
  const verb = verbOf(argv);
  const words = verb === undefined ? [] : wordsOf(argv, verb);
  const unknown = words.find(({ kind }) => kind === 'unknown-flag');
  if (verb === undefined || unknown === undefined) return argv;
  return withKnownFlags(explainUnknown(verb, words, unknown).argv);
}

/** Explains an unknown flag: as another name of a known flag, as a flag of another command, or as an operand. */
function explainUnknown(verb: Verb, words: readonly Word[], unknown: Word): UnknownFlag {
  const [typed = '', carried] = unknown.text.split(/=(.*)/s);
  const at = words.indexOf(unknown);
  const next = words[at + 1];
  const plain = typed.replace(/^-+/, '');
  const other = VERBS.find((candidate) => flagsOf(candidate).some((name) => name === plain));
  const foreign = other === undefined ? undefined : flagsOf(other).find((name) => name === plain);
  // The word after a switch is not its value.
  const hasValue = next?.kind === 'value' && (foreign === undefined || !isSwitch(foreign));
  const value = carried ?? (hasValue ? next.text : undefined);
  const before = textsOf(words.slice(0, at));
  const after = textsOf(words.slice(at + (hasValue ? 2 : 1)));
  const names = flagsOf(verb);
  const near = nearest(plain, names);
  const known =
    names.find((name) => flagSpec(name).aka?.includes(plain) === true) ?? names.find((name) => name === near);
  if (known !== undefined) {
    const given = isSwitch(known)
      ? [`--${known}`, ...(value === undefined || carried !== undefined ? [] : [value])]
      : [`--${known}`, validValue(known, plain, value)];
    const shown = carried === undefined ? given : [given.join('=')];
    return {
      message: `${verb} has no flag ${typed}`,
      hint: `did you mean --${known}?`,
      argv: folded([...before, ...shown, ...after], verb),
    };
  }
  if (verb === 'run' && foreign !== undefined && (other === 'vision' || other === 'metrics')) {
    const argv = [...before, ...after];
    const file = wordsOf(argv, verb).find(({ kind }) => kind === 'operand')?.text;
    if (file !== undefined && foreign === 'config') {
      const { message, hint } = noConfigFile('', file);
      return { message, ...(hint === undefined ? {} : { hint }), argv };
    }
    if (file !== undefined) {
      const entry = `${plain}: ${valueInFile(foreign, value)}`;
      return {
        message: `run has no flag ${typed}: write it as "${entry}" in the job or under defaults of ${file}`,
        argv,
      };
    }
    const flags = textsOf(words.filter(({ kind }) => kind !== 'verb' && kind !== 'operand'));
    return {
      message: `run has no flag ${typed}: write the options of a job into the file of jobs`,
      argv: [other, ...flags],
    };
  }
  const operand = VERB_TEXTS[verb].operand?.slice(1, -1);
  if (operand === plain && value !== undefined && !words.some(({ kind }) => kind === 'operand'))
    return {
      message: `${verb} has no flag ${typed}`,
      hint: `the ${operand} is written without a flag`,
      argv: [...before, value, ...after],
    };
  const inner = words.slice(words.findIndex(({ text }) => text === '--') + 1)[0]?.text;
  if (VERB_TEXTS[verb].behind !== undefined && foreign !== undefined && isVerb(inner ?? ''))
    if (flagsOf(VERBS.find((one) => one === inner) ?? verb).includes(foreign))
      return {
        message: `${verb} has no flag ${typed}`,
        hint: `${typed} is a flag of ${inner ?? ''}: write it after --`,
        argv: [...before, ...after, unknown.text, ...(hasValue ? [next.text] : [])],
      };
  const hint =
    other === undefined ? `cryptodl ${verb} --help shows its flags` : `${typed} is a flag of ${other}`;
  return { message: `${verb} has no flag ${typed}`, hint, argv: [...before, ...after] };
}

/** The value as YAML that is also valid between braces. */
function valueInFile(flag: FlagName, typed: string | undefined): string {
  const { default: usual, example } = flagSpec(flag);
  const value = isSwitch(flag) ? 'true' : (typed ?? usual ?? example ?? '');
  return /^[\w./][\w./=+-]*$/.test(value) ? value : `'${value.replaceAll("'", "''")}'`;
}

/**
 * The given value if the flag accepts it or has no choices. Else the typed name of the flag if it is one of the choices (`--csv`
 * means `--format csv`), else the default or the example.
 */
function validValue(name: FlagName, typed: string, value: string | undefined): string {
  const spec = flagSpec(name);
  for (const candidate of [value, typed]) {
    if (candidate === undefined || (candidate === typed && spec.choices === undefined)) continue;
    try {
      spec.parse(candidate, '');
      if (spec.choices === undefined || spec.list !== undefined || spec.choices.includes(candidate))
        return candidate;
    } catch {
      // The flag does not accept this value.
    }
  }
  return value !== undefined && spec.choices === undefined ? value : (spec.default ?? spec.example ?? '');
}

/** The usage error for positional arguments that the command does not take. */
function excessWords(verb: Verb, words: readonly Word[]): Error {
  const operands = words.filter(({ kind }) => kind === 'operand');
  if (FOLDING.includes(verb))
    return usage(`${verb} takes no argument: "${operands[0]?.text ?? ''}" is one too many`, undefined, {
      argv: folded(textsOf(words), verb),
    });
  if (verb === 'sql')
    return usage(
      `sql takes one argument: "${operands[1]?.text ?? ''}" is one too many`,
      'put the query in quotes',
      {
        argv: [...textsOf(words.filter(({ kind }) => kind !== 'operand')), textsOf(operands).join(' ')],
      },
    );
  const allowed = VERB_TEXTS[verb].operand === undefined ? 0 : 1;
  const extra = operands.slice(allowed);
  return usage(
    `${verb} takes ${allowed === 0 ? 'no' : 'one'} argument: "${extra[0]?.text ?? ''}" is one too many`,
    undefined,
    {
      argv: textsOf(words.filter((word) => !extra.includes(word))),
    },
  );
}

/** In corrected lines of these verbs, positional arguments become values of flags. */
const FOLDING: readonly Verb[] = ['vision', 'coverage'];

/** Turns positional arguments into values of flags: markets, datasets, intervals, the folder of a lake, and otherwise symbols. */
function folded(argv: readonly string[], verb: Verb): string[] {
  const words = wordsOf(argv, verb);
  const loose = FOLDING.includes(verb) ? words.filter(({ kind }) => kind === 'operand') : [];
  if (loose.length === 0) return [...argv];
  const flagOf = (text: string): FlagName => {
    if (verb === 'coverage' && /[./]/.test(text)) return 'out';
    const flags = ['market', 'dataset', 'interval'] as const;
    return flags.find((flag) => flagSpec(flag).choices?.includes(text)) ?? 'symbols';
  };
  let line = textsOf(words.filter((word) => !loose.includes(word)));
  for (const { text } of loose) line = withItem(line, verb, flagOf(text), text);
  return line;
}

/** The line with `item` as a value of the flag: added to the values of a list, or in place of a single value. */
function withItem(argv: readonly string[], verb: Verb, flag: FlagName, item: string): string[] {
  const words = wordsOf(argv, verb);
  const at = words.findIndex(({ kind, flag: of }) => kind === 'value' && of === flag);
  if (at < 0) return [...argv, `--${flag}`, item];
  return textsOf(words).map((text, index) => {
    if (index !== at || text === item) return text;
    // `A, B` and `A ,B` have a comma already.
    const items = [text.replace(/,+$/, ''), item.replace(/^,+/, '')];
    return flagSpec(flag).list === undefined ? item : items.join(',');
  });
}
