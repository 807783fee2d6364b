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
  const hasOperand = VERB_TEXTS[verb].operand !== undefined;
  const values = words.slice(hasOperand ? 1 : 0).map((word) => {
    const flag = flagOf(verb, word);
    if (flag === undefined) throw oneTooMany(verb, word);
    return [flag, word] as const;
  });
  return { operand: hasOperand ? words[0] : undefined, values };
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
  // Downloads take any word as symbols. Other verbs take none with small letters: `verify lake2` without such a folder is a mistake.
  const isSymbolList = DOWNLOADS.includes(verb) || !/\p{Ll}/u.test(word) || word.startsWith('@');
  return flags.includes('symbols') && isSymbolList ? 'symbols' : undefined;
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

const DOWNLOADS: readonly Verb[] = ['vision', 'metrics', 'audit', 'enqueue'];

function oneTooMany(verb: Verb, word: string): Error {
  const { operand, examples } = VERB_TEXTS[verb];
  return usage(
    `${verb} takes ${operand === undefined ? 'no' : 'one'} argument: "${word}" is one too many`,
    `for example: ${examples[0] ?? ''}`,
  );
}
