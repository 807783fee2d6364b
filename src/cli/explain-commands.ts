/** Usage errors for commands in the wrong place: in quotes, after `run`, and with flags of `schedule` after `--`. */
import { existsSync } from 'node:fs';
import { usage } from '../model/errors.js';
import type { Verb } from '../options/flag-spec.js';
import { flagsOf } from '../options/flags.js';
import { isVerb, textsOf, wordsOf } from './command-words.js';
import { VERB_TEXTS } from './verbs.js';

/** Throws a usage error for a line of one of these forms. */
export function refuseMisplacedCommand(argv: readonly string[], verb: Verb): void {
  const words = wordsOf(argv, verb);
  const operand = words.find(({ kind }) => kind === 'operand');
  if (verb === 'run' && operand !== undefined && isVerb(operand.text) && !existsSync(operand.text))
    throw usage(`run takes a file of jobs; ${operand.text} is a command of its own`, undefined, {
      argv: textsOf(words.slice(words.indexOf(operand))),
    });
  const repair = words.findIndex(({ text }) => text === '--repair');
  if (verb === 'verify' && repair >= 0)
    throw usage('verify has no flag --repair', 'repair is a command of its own', {
      argv: ['repair', ...textsOf(words.filter(({ kind }, at) => kind !== 'verb' && at !== repair))],
    });
  if (VERB_TEXTS[verb].behind !== undefined) refuseOwnFlagBehind(argv, verb);
}

/** The words of a command that was given in quotes, as one word. Undefined for another word, and for one with quotes inside. */
export function quotedCommand(word: string): string[] | undefined {
  const [first = '', ...rest] = word.trim().split(/\s+/);
  const line = first === 'cryptodl' ? rest : [first, ...rest];
  const isCommand = rest.length > 0 && isVerb(line[0] ?? '') && !/["'\\$`]/.test(word);
  return isCommand ? line : undefined;
}

/** Throws the error for a flag of `verb` after `--`, where the other command does not have it. */
function refuseOwnFlagBehind(argv: readonly string[], verb: Verb): void {
  const at = argv.indexOf('--');
  const behind = at < 0 ? [] : argv.slice(at + 1);
  const [inner = ''] = behind;
  if (!isVerb(inner) || inner === verb) return;
  const words = wordsOf(behind, inner);
  const own = words.find(
    ({ kind, text }) =>
      kind === 'unknown-flag' && flagsOf(verb).some((name) => text.split('=')[0] === `--${name}`),
  );
  if (own === undefined) return;
  const from = words.indexOf(own);
  const to = words[from + 1]?.kind === 'value' ? from + 2 : from + 1;
  const [flag = ''] = own.text.split('=');
  throw usage(`${inner} has no flag ${flag}`, `${flag} is a flag of ${verb}: write it before --`, {
    argv: [
      ...argv.slice(0, at),
      ...textsOf(words.slice(from, to)),
      '--',
      ...textsOf([...words.slice(0, from), ...words.slice(to)]),
    ],
  });
}
