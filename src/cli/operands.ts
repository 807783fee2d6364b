/** Reads the words of a line that belong to no flag: the operand of the verb, and values of flags. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { usage } from '../model/errors.js';
import type { Verb } from '../options/flag-spec.js';
import { flagSpec, flagsOf } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { VERB_TEXTS } from './verbs.js';

export interface Operands {
  readonly operand: string | undefined;
  /** Words that are values of flags: symbols, markets, datasets, intervals, the folder of the lake. */
  readonly values: readonly (readonly [flag: FlagName, value: string])[];
}

/** Throws a usage error for a word without a meaning. */
export function readOperands(verb: Verb, words: readonly string[]): Operands {
  const operand = operandOf(verb, words);
  const at = operand === undefined ? -1 : words.indexOf(operand);
  const values = words
    .filter((_, index) => index !== at)
    .map((word) => {
      const flag = flagOf(verb, word);
      if (flag === undefined) throw oneTooMany(verb, word);
      return [flag, word] as const;
    });
  return { operand, values };
}

/** The operand of the verb among these words, which may stand in any order: `schema um klines`, `list BTCUSDT periods`. */
function operandOf(verb: Verb, words: readonly string[]): string | undefined {
  const { operand, choices } = VERB_TEXTS[verb];
  if (operand === undefined) return undefined;
  const isOperand = (word: string): boolean => {
    // A bar is `15m` or `tick:500`.
    if (verb === 'bars') return /^\d|:/.test(word);
    if (choices !== undefined) return choices.includes(word);
    if (verb === 'schema') return flagOf(verb, word) !== 'market';
    if (verb === 'sql') return flagOf(verb, word) !== 'out';
    return verb !== 'plot' || flagOf(verb, word) === 'symbols';
  };
  // Without one, the first word: the verb refuses it.
  return words.find(isOperand) ?? words[0];
}

function flagOf(verb: Verb, word: string): FlagName | undefined {
  const flags = flagsOf(verb);
  if (flags.includes('html') && /\.html?$/i.test(word)) return 'html';
  const named = (['market', 'dataset', 'interval'] as const).find(
    (name) => flags.includes(name) && word.split(',').every((part) => isValueOf(name, part)),
  );
  if (named !== undefined) return named;
  if (isPlace(word)) {
    // Any folder but a lake is the target of an export, also a new one.
    if (flags.includes('target') && !existsSync(join(word, '_manifests'))) return 'target';
    return flags.includes('out') ? 'out' : undefined;
  }
  if (flags.includes('days') && DAYS.test(word))
    throw usage(
      `"${word}" is not a symbol`,
      'days need a flag: --days 7, or --from 2024-01-05 --to 2024-01-31',
    );
  return flags.includes('symbols') && isSymbolList(verb, word) ? 'symbols' : undefined;
}

/** Whether the flag takes this text, in any of its accepted forms. */
function isValueOf(name: 'market' | 'dataset' | 'interval', text: string): boolean {
  const { choices, parse } = flagSpec(name);
  try {
    return choices?.some((choice) => choice === parse(text, name)) === true;
  } catch {
    return false;
  }
}

/** Whether the word is a path, the address of a bucket or an existing folder. A word like BTCUSDT is a symbol, also if a folder has this name. */
function isPlace(word: string): boolean {
  if (/^(?:\.{0,2}\/|~|s3:|\.{1,2}$)/i.test(word)) return true;
  // existsSync comes first: statSync throws for a query that is longer than a path can be.
  return !/^[\p{Lu}\d]{5,}(?:_\w+)?$/u.test(word) && existsSync(word) && statSync(word).isDirectory();
}

/** A number of days, a date, or a word for a day. */
const DAYS = /^(?:\d+ ?d(?:ays?)?|\d{4}[-/.]\d.*|yesterday|today)$/i;

const DOWNLOADS: readonly Verb[] = ['vision', 'metrics', 'audit', 'enqueue'];

/** Downloads take any word as symbols. Other verbs take none with small letters: `verify lake2` without such a folder is a mistake. */
function isSymbolList(verb: Verb, word: string): boolean {
  return DOWNLOADS.includes(verb) || !/\p{Ll}/u.test(word) || word.startsWith('@');
}

function oneTooMany(verb: Verb, word: string): Error {
  const { operand, examples } = VERB_TEXTS[verb];
  return usage(
    `${verb} takes ${operand === undefined ? 'no' : 'one'} argument: "${word}" is one too many`,
    verb === 'sql' ? 'put the query in quotes' : `for example: ${examples[0] ?? ''}`,
  );
}
