/** Prints an error for people, with a corrected command line if there is one. */
import type { Correction, CryptodlError } from '../model/errors.js';
import { exitCodeOfError } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { environmentName, FLAG_NAMES, flagsOf, isSwitch, nameOptions } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { RANGE } from '../options/resolve.js';
import type { Resolved } from '../options/resolve.js';
import { printLines, shellWord, withoutPassword } from '../text/printable.js';
import { isSchedulable, textsOf, verbOf, wordsOf } from './command-words.js';
import type { Word } from './command-words.js';
import { isValidLine } from './program.js';

/** The command line of an error, and what its correction needs. */
export interface Typed {
  readonly argv: readonly string[];
  readonly io: Io;
  /** The words before `argv`, for example `schedule --`. */
  readonly before?: readonly string[];
  /** The sources of the options. Without it, messages name flags. */
  readonly resolved?: Pick<Resolved, 'nameOf' | 'origins' | 'texts'>;
}

/** Prints the error with its hint and a corrected command line. Bugs also print their stack. Returns the exit code. */
export function printError(error: CryptodlError, typed: Typed): ExitCode {
  const { argv, io, before, resolved } = typed;
  const { hint, correction, cause } = error;
  const line =
    correction === undefined || !isUsable(argv, correction)
      ? undefined
      : (linesToDelete(correction, resolved) ?? correctedLine(argv, correction, io.environment, before));
  const stack = error.code === 'bug' && cause instanceof Error ? cause.stack?.split('\n') : undefined;
  const message = resolved === undefined ? error.message : nameOptions(error.message, resolved.nameOf);
  printLines(io.stderr, [
    `cryptodl: ${message}`,
    ...[hint, line].flatMap((text) => (text === undefined ? [] : `  ${text}`.split('\n'))),
    ...(stack ?? []),
  ]);
  return exitCodeOfError(error.code);
}

/**
 * The lines of the config file to delete, if the correction removes options that stand there: a command line cannot remove them.
 * A range from flags replaces the range of the file.
 */
function linesToDelete({ flags = {} }: Correction, resolved: Typed['resolved']): string | undefined {
  const names = FLAG_NAMES.filter(
    (name) => flags[name] === null && resolved?.origins[name] === 'config file' && !isReplaced(name, flags),
  );
  return names.length === 0
    ? undefined
    : names
        .map((name) => {
          const file = resolved?.nameOf(name).slice(0, -`: ${name}`.length) ?? '';
          return `delete the line "${name}: ${resolved?.texts[name]?.join(',') ?? ''}" in ${file}`;
        })
        .join('\n');
}

/** Whether the correction has another range, so that the range of the file no longer counts. */
function isReplaced(name: FlagName, flags: NonNullable<Correction['flags']>): boolean {
  return RANGE.has(name) && FLAG_NAMES.some((other) => RANGE.has(other) && typeof flags[other] === 'string');
}

/**
 * False if the given line is valid and the corrected line is not: some verbs, such as `retry`, lack flags that corrections name. If
 * both are invalid, the given line has another mistake, and the correction is still worth printing.
 */
function isUsable(argv: readonly string[], correction: Correction): boolean {
  return isValidLine(correctedWords(argv, correction)) || !isValidLine(argv);
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
function correctedWords(argv: readonly string[], correction: Correction): string[] {
  const { flags = {}, operand, command } = correction;
  let words =
    command === undefined ? [...(correction.argv ?? argv)] : [...command, ...keptFlags(argv, command)];
  if (operand !== undefined) words = withOperand(words, operand);
  for (const [name, value] of Object.entries(flags)) words = withFlag(words, name, value);
  return words;
}

/** The corrected command line as text for a shell. */
export function correctedLine(
  argv: readonly string[],
  correction: Correction,
  environment: Readonly<Record<string, string | undefined>> = {},
  before: readonly string[] = [],
): string {
  const line = correctedWords(argv, correction);
  const verb = verbOf(line);
  const wrapped = verb === undefined || !isSchedulable(verb) ? line : [...before, ...line];
  const typed = ['cryptodl', ...wrapped].map((word) => shellWord(withoutPassword(word))).join(' ');
  // Without the flag, its environment variable or config key would still count.
  const variables = Object.entries(correction.flags ?? {})
    .filter(([, value]) => value === null)
    .flatMap(([name]) => FLAG_NAMES.find((flag) => flag === name) ?? [])
    .map(environmentName)
    .filter((name) => environment[name] !== undefined);
  return variables.length === 0 ? typed : `env ${variables.map((name) => `-u ${name}`).join(' ')} ${typed}`;
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
