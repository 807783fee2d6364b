/** Usage errors for command lines that cannot be parsed: the mistake, and a corrected line. */
import { existsSync } from 'node:fs';
import type { CommanderError } from 'commander';
import { nearest } from '../text/did-you-mean.js';
import { CryptodlError, usage } from '../model/errors.js';
import { VERBS } from '../options/flag-spec.js';
import { defaultOf, flagSpec, flagsOf, isSwitch, parserOf } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import { isVerb, textsOf, verbOf, wordsOf } from './command-words.js';
import type { Word } from './command-words.js';
import { explainUnknown, withKnownFlags } from './explain-unknown-flag.js';
import { quotedCommand } from './explain-commands.js';
import { folded, FOLDING, isFolder } from './fold-operands.js';
import { FOREIGN_VERBS } from './foreign-words.js';
import { VERB_TEXTS } from './verbs.js';

/** A useful first command for a new user. */
const FIRST_LINE = ['vision', '--symbols', 'BTCUSDT', '--days', '1'];

/** Words for the continuation of a run, which needs no command of its own. */
const CONTINUATIONS: readonly string[] = ['resume', 'continue'];

/** Throws the usage error for a missing or unknown verb. The first word of `argv` is taken as the verb. */
export function refuseVerb(argv: readonly string[]): never {
  const [word, ...rest] = argv;
  if (word === undefined)
    throw usage('no command given', 'the commands are listed by cryptodl --help', { command: FIRST_LINE });
  const quoted = quotedCommand(word);
  if (quoted !== undefined)
    throw usage(`"${word}" is not a command`, 'write the command without quotes', {
      argv: [...quoted, ...rest],
    });
  if (CONTINUATIONS.includes(word) && !isReport(rest[0]))
    throw usage(
      `"${word}" is not a command`,
      'type the same command again: a run continues where the last one ended',
      isVerb(rest[0] ?? '') ? { argv: rest } : undefined,
    );
  const owner = VERBS.find((name) => VERB_TEXTS[name].choices?.includes(word) === true);
  if (owner !== undefined)
    throw usage(`"${word}" is not a command`, `did you mean ${owner} ${word}?`, { argv: [owner, ...argv] });
  const verb =
    VERBS.find((name) => VERB_TEXTS[name].aka.includes(word)) ??
    (Object.hasOwn(FOREIGN_VERBS, word) ? FOREIGN_VERBS[word] : nearest(word, VERBS));
  const known = VERBS.find((name) => name === verb);
  if (known !== undefined)
    throw usage(`"${word}" is not a command`, `did you mean ${known}?`, {
      // `list-pairs` of freqtrade is `list pairs`.
      argv: folded(
        [known, ...(word.startsWith(`${known}-`) ? [word.slice(known.length + 1)] : []), ...rest],
        known,
      ),
    });
  if (/^[\p{Lu}\d]{5,}(_\w+)?$/u.test(word))
    throw usage(`"${word}" is not a command`, 'symbols are given with --symbols', {
      argv: folded(['vision', ...argv], 'vision'),
    });
  throw usage(`"${word}" is not a command`, `commands are ${VERBS.join(', ')}`);
}

function isReport(word = ''): boolean {
  return word.endsWith('.jsonl');
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
    const value = defaultOf(flag, verb) ?? flagSpec(flag).example;
    const next = words[at + 1]?.text ?? '';
    // A negative number looks like a flag.
    const isNumber = /^-\d/.test(next);
    const rest = words.slice(isNumber ? at + 2 : at + 1);
    const filled = [...textsOf(words.slice(0, at + 1)), value ?? '', ...textsOf(rest)];
    if (isNumber) refuseNumber({ flag, verb }, next, filled);
    throw usage(
      `--${flag} needs a value`,
      value === undefined ? undefined : `--${flag} ${value}`,
      value === undefined ? undefined : { argv: filled },
    );
  }
}

/** Throws the error of the flag itself, if the flag does not accept the negative number. */
function refuseNumber(
  { flag, verb }: { readonly flag: FlagName; readonly verb: Verb },
  value: string,
  filled: readonly string[],
): void {
  try {
    parserOf(flag, verb)(value, `--${flag}`);
  } catch (error) {
    if (!(error instanceof CryptodlError)) throw error;
    const { message, hint, correction } = error;
    const better = correction?.value;
    throw usage(
      message,
      hint,
      better === undefined ? undefined : { argv: filled, flags: { [flag]: better } },
    );
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
    const line = isOfVision ? { argv: ['vision', ...argv] } : undefined;
    return usage(isOfVision ? 'no command given' : first, 'a command comes first, for example vision', line);
  }
  const words = wordsOf(argv, verb);
  if (words[0]?.kind !== 'verb') {
    const rest = textsOf(words.filter(({ kind }) => kind !== 'verb'));
    return usage(`the command ${verb} comes first`, undefined, { argv: [verb, ...rest] });
  }
  const inner = words.find(
    ({ kind, text }) => kind === 'operand' && (isVerb(text) || quotedCommand(text) !== undefined),
  );
  if (VERB_TEXTS[verb].behind !== undefined && inner !== undefined && !argv.includes('--')) {
    const at = words.indexOf(inner);
    const command = [...(quotedCommand(inner.text) ?? [inner.text]), ...textsOf(words.slice(at + 1))];
    const line = [...textsOf(words.slice(0, at)), '--', ...command];
    return usage(`${verb}: write -- before the command`, undefined, { argv: line });
  }
  const unknown = words.find(({ kind }) => kind === 'unknown-flag');
  const valued = words.find(
    ({ kind, flag, text }) => kind === 'flag' && flag !== undefined && isSwitch(flag) && text.includes('='),
  );
  if (unknown !== undefined) {
    const { message, hint, argv: line } = explainUnknown(verb, words, unknown);
    const corrected = line === undefined ? undefined : withKnownFlags(line);
    return usage(message, hint, corrected === undefined ? undefined : { argv: corrected });
  }
  if (valued?.flag !== undefined)
    return usage(`--${valued.flag} takes no value`, undefined, {
      argv: textsOf(words).map((text) => (text === valued.text ? `--${valued.flag ?? ''}` : text)),
    });
  if (error.code === 'commander.excessArguments') return excessWords(verb, words);
  if (error.code === 'commander.missingArgument')
    return usage(
      `${verb} needs a ${VERB_TEXTS[verb].operand?.replaceAll(/[<>.]/g, '') ?? ''}`,
      `for example: ${VERB_TEXTS[verb].examples[0] ?? ''}`,
    );
  return usage(first, VERB_TEXTS[verb].examples[0]);
}

/** The usage error for positional arguments that the command does not take. */
function excessWords(verb: Verb, words: readonly Word[]): Error {
  const operands = words.filter(({ kind }) => kind === 'operand');
  if (FOLDING.includes(verb))
    return usage(`${verb} takes no argument: "${operands[0]?.text ?? ''}" is one too many`, undefined, {
      argv: folded(textsOf(words), verb),
    });
  if (verb === 'sql') return excessWordsOfQuery(words);
  const allowed = VERB_TEXTS[verb].operand === undefined ? 0 : 1;
  const line = textsOf(words);
  const inFlags = folded(line, verb);
  const extra = operands.slice(allowed);
  return usage(
    `${verb} takes ${allowed === 0 ? 'no' : 'one'} argument: "${extra[0]?.text ?? ''}" is one too many`,
    undefined,
    {
      argv:
        inFlags.join(' ') === line.join(' ')
          ? textsOf(words.filter((word) => !extra.includes(word)))
          : inFlags,
    },
  );
}

/** The usage error for a query without quotes. */
function excessWordsOfQuery(words: readonly Word[]): Error {
  const operands = words.filter(({ kind }) => kind === 'operand');
  const others = textsOf(words.filter(({ kind }) => kind !== 'operand'));
  const [first = '', second = ''] = textsOf(operands);
  const folder = [first, second].find((text) => isFolder(text));
  if (operands.length === 2 && folder !== undefined)
    return usage(`sql takes one argument, a query: "${folder}" is a folder`, undefined, {
      argv: [...others, '--out', folder, folder === first ? second : first],
    });
  const message = `sql takes one argument: "${second}" is one too many`;
  const file = operands.find(({ text }) => existsSync(text))?.text;
  // The shell has replaced `*` by the names of files, so the query is not known.
  if (file !== undefined)
    return usage(
      message,
      `put the query in quotes: without them, the shell replaces * by names of files, for example ${file}\nfor example: cryptodl sql 'SELECT * FROM um_klines'`,
    );
  return usage(message, 'put the query in quotes', { argv: [...others, textsOf(operands).join(' ')] });
}
