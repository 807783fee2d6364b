/** Corrected command lines: applies the correction of an error, then the corrections of the errors that remain. */
import type { Correction, CryptodlError } from '../model/errors.js';
import { FLAG_NAMES, flagsOf, isSwitch } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { SECRET_ADDRESSES } from '../options/value-text.js';
import { shellWord, withoutPassword } from '../text/printable.js';
import { isSchedulable, textsOf, verbOf, wordsOf } from './command-words.js';
import type { Word } from './command-words.js';

/** A command line without a known mistake. */
export interface Corrected {
  /** The words after `cryptodl`. */
  readonly words: readonly string[];
  /** The values of all applied corrections, by flag; null for a removed flag. */
  readonly flags: Readonly<Partial<Record<FlagName, string | null>>>;
}

/** The error of a command line. `removed`: options that count as not given in the environment and in the config file. */
export type RefusalOf = (
  words: readonly string[],
  removed: readonly FlagName[],
) => Promise<CryptodlError | undefined>;

/** A line with more mistakes gets no suggestion. */
const MOST_CORRECTIONS = 8;

/**
 * Applies the correction, and then those of the errors that the corrected line still has. Undefined if an error without a
 * correction remains.
 */
export async function workingLine(
  argv: readonly string[],
  first: Correction | undefined,
  refusalOf: RefusalOf,
): Promise<Corrected | undefined> {
  let words = argv;
  let correction = first;
  const flags: Partial<Record<FlagName, string | null>> = {};
  for (let step = 0; step < MOST_CORRECTIONS && correction !== undefined; step += 1) {
    // A correction with another command fits the line that the user typed, not a line that was corrected once.
    if (step > 0 && correction.command !== undefined) return undefined;
    words = correctedWords(words, correction);
    for (const name of FLAG_NAMES) {
      const value = correction.flags?.[name];
      if (value !== undefined) flags[name] = value;
    }
    const refusal = await refusalOf(
      words,
      FLAG_NAMES.filter((name) => flags[name] === null),
    );
    if (refusal === undefined) return { words, flags };
    correction = refusal.correction;
  }
  return undefined;
}

/** Flags that a suggested other command keeps: the lake, addresses, the time and the config file. */
const KEPT: readonly FlagName[] = [
  'out',
  'archive-url',
  'listing-url',
  'fapi-url',
  'dapi-url',
  'spot-url',
  'now',
  'config',
];

/** The words after `cryptodl`. */
export function correctedWords(argv: readonly string[], correction: Correction): string[] {
  const { flags = {}, operand, command, verb } = correction;
  let words =
    command === undefined ? [...(correction.argv ?? argv)] : [...command, ...keptFlags(argv, command)];
  if (verb !== undefined) words = withVerb(words, verb);
  if (operand !== undefined) words = withOperand(words, operand);
  for (const [name, value] of Object.entries(flags)) words = withFlag(words, name, value);
  return words;
}

/** The corrected command line as text for a shell. */
export function correctedLine(
  argv: readonly string[],
  correction: Correction,
  before: readonly string[] = [],
): string {
  return lineText(correctedWords(argv, correction), before);
}

/** A command line as text for a shell. `before`: the words `schedule --` with their flags, for a command that `schedule` can repeat. */
export function lineText(words: readonly string[], before: readonly string[] = []): string {
  const verb = verbOf(words);
  const line = verb === undefined || !isSchedulable(verb) ? words : [...before, ...words];
  const { shown, hidden } = withoutSecrets(line);
  const text = ['cryptodl', ...shown].map((word) => shellWord(withoutPassword(word))).join(' ');
  return hidden.length === 0 ? text : `${text}  (and your ${hidden.join(' and ')})`;
}

/** The flag of a secret address: of `--ping` and of `--ping=URL`. */
function secretFlagOf(word: string): string | undefined {
  const [flag = ''] = word.split('=');
  return flag.startsWith('--') && SECRET_ADDRESSES.has(flag.slice(2)) ? flag : undefined;
}

/** Users pass lines on, so a line leaves secret addresses out. Also those of a command behind `--`. */
function withoutSecrets(words: readonly string[]): { shown: string[]; hidden: string[] } {
  const isSecret = (word: string, at: number): boolean =>
    secretFlagOf(word) !== undefined || [...SECRET_ADDRESSES].some((name) => words[at - 1] === `--${name}`);
  const hidden = new Set(words.flatMap((word) => secretFlagOf(word) ?? []));
  return { shown: words.filter((word, at) => !isSecret(word, at)), hidden: [...hidden] };
}

/** The line of a download with another verb: the flags stay. A line that downloads nothing stays as it is. */
function withVerb(line: readonly string[], verb: string): string[] {
  const at = line.findIndex((word) => word === 'vision' || word === 'metrics');
  return line.map((word, index) => (index === at ? verb : word));
}

function withOperand(line: readonly string[], operand: string): string[] {
  const verb = verbOf(line);
  if (verb === undefined) return [...line];
  const words = wordsOf(line, verb);
  const at = words.findIndex(({ kind }) => kind === 'operand');
  return at < 0 ? [...line, operand] : textsOf(words).map((text, index) => (index === at ? operand : text));
}

/** Sets the flag at its first occurrence, or else at the end, and removes its other occurrences. The value null removes the flag. */
function withFlag(line: readonly string[], name: string, value: string | null): string[] {
  const flag = FLAG_NAMES.find((known) => known === name);
  const verb = verbOf(line);
  if (flag === undefined || verb === undefined) return [...line];
  const given = value === null ? [] : isSwitch(flag) ? [`--${name}`] : [`--${name}`, value];
  const words = wordsOf(line, verb);
  const at = words.findIndex((word) => word.flag === flag);
  const others = (part: readonly Word[]): string[] => textsOf(part.filter((word) => word.flag !== flag));
  return at < 0 ? [...line, ...given] : [...others(words.slice(0, at)), ...given, ...others(words.slice(at))];
}

function keptFlags(argv: readonly string[], command: readonly string[]): string[] {
  const typed = verbOf(argv);
  const next = verbOf(command);
  if (typed === undefined || next === undefined) return [];
  const taken = flagsOf(next).filter((name) => KEPT.includes(name));
  return textsOf(wordsOf(argv, typed).filter(({ flag }) => flag !== undefined && taken.includes(flag)));
}
