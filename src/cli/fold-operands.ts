/** Turns positional arguments of a corrected line into values of flags. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { flagsOf, flagSpec } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import { textsOf, wordsOf } from './command-words.js';
import type { Word } from './command-words.js';
import { VERB_TEXTS } from './verbs.js';

/** In corrected lines of these verbs, positional arguments become values of flags. */
export const FOLDING: readonly Verb[] = [
  'vision',
  'metrics',
  'verify',
  'repair',
  'audit',
  'coverage',
  'report',
  'runs',
  'doctor',
  'universe',
];
/** In corrected lines of these verbs, positional arguments other than the operand become values of flags. */
const FOLDING_OTHERS: readonly Verb[] = ['list', 'schema', 'plot', 'export', 'bars'];
/** These verbs write the lake, so a path in their lines is the lake only if the folder exists. */
const WRITING_VERBS: readonly Verb[] = ['vision', 'metrics'];

/** Turns positional arguments into values of flags: markets, datasets, intervals, the folder of a lake, and otherwise symbols. */
export function folded(argv: readonly string[], verb: Verb): string[] {
  const words = wordsOf(argv, verb);
  const loose = looseWords(words, verb);
  if (loose.length === 0) return [...argv];
  let line = textsOf(words.filter((word) => !loose.includes(word)));
  for (const { text } of loose) {
    const flag = flagOf(text, verb);
    // A plot has one symbol.
    if (verb !== 'plot' || flag !== 'symbols') line = withItem(line, verb, flag, text);
  }
  return line;
}

/** The positional arguments that the verb does not take, and that can be values of its flags. */
function looseWords(words: readonly Word[], verb: Verb): readonly Word[] {
  const operands = words.filter(({ kind }) => kind === 'operand');
  if (WRITING_VERBS.includes(verb)) return operands;
  const isLoose = ({ text }: Word): boolean => {
    const flag = flagOf(text, verb);
    return flagsOf(verb).includes(flag) && (flag !== 'symbols' || /^[\p{Lu}\p{Lo}\d*,]+(_\w+)?$/u.test(text));
  };
  if (FOLDING.includes(verb)) return operands.filter(isLoose);
  if (!FOLDING_OTHERS.includes(verb) || operands.length < 2) return [];
  const { choices } = VERB_TEXTS[verb];
  const own = operands.find(({ text }) => {
    // A bar is `15m` or `tick:500`.
    if (verb === 'bars') return /^\d|:/.test(text);
    return choices === undefined ? flagOf(text, verb) !== 'market' : choices.includes(text);
  });
  return own === undefined ? [] : operands.filter((word) => word !== own && isLoose(word));
}

function flagOf(text: string, verb: Verb): FlagName {
  if ((verb === 'report' || verb === 'plot') && /\.html?$/i.test(text)) return 'html';
  // The lake is there already, and the folder of an export need not be.
  if (verb === 'export' && (/[./]/.test(text) || isFolder(text)) && !isLake(text)) return 'target';
  const isPath = /[./]/.test(text) && FOLDING.includes(verb) && !WRITING_VERBS.includes(verb);
  if (isPath) return 'out';
  const flags = ['market', 'dataset', 'interval'] as const;
  const named = flags.find((flag) => flagSpec(flag).choices?.includes(text));
  if (named !== undefined) return named;
  return flagsOf(verb).includes('out') && isFolder(text) ? 'out' : 'symbols';
}

function isLake(word: string): boolean {
  return existsSync(join(word, '_manifests'));
}

/** Whether the word names an existing folder. A word like BTCUSDT is a symbol, also if a folder has this name. */
export function isFolder(word: string): boolean {
  return (
    !/^[\p{Lu}\d]{5,}(_\w+)?$/u.test(word) &&
    statSync(word, { throwIfNoEntry: false })?.isDirectory() === true
  );
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
