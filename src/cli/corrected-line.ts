/** The command line that was typed, with a correction: a line that can be typed as it is. */
import type { Correction } from '../errors.js';
import { environmentName, FLAG_NAMES, flagsOf, isSwitch, VERBS } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { textsOf, verbOf, wordsOf } from './command-words.js';

/** Flags that say where things are: another command is typed with them too. */
const PLACES: readonly FlagName[] = ['out', 'archive-url', 'listing-url', 'now', 'config'];

export function correctedLine(
  argv: readonly string[],
  correction: Correction,
  environment: Readonly<Record<string, string | undefined>> = {},
): string {
  const { flags = {}, operand, command } = correction;
  let line =
    command === undefined ? [...(correction.argv ?? argv)] : [...command, ...placesOf(argv, command)];
  if (operand !== undefined) line = withOperand(line, operand);
  for (const [name, value] of Object.entries(flags)) line = withFlag(line, name, value);
  const typed = ['cryptodl', ...line].map(quoted).join(' ');
  // A flag that is left out does not undo its twin.
  const twins = Object.entries(flags)
    .filter(([, value]) => value === null)
    .flatMap(([name]) => FLAG_NAMES.find((flag) => flag === name) ?? [])
    .map(environmentName)
    .filter((name) => environment[name] !== undefined);
  return twins.length === 0 ? typed : `env ${twins.map((name) => `-u ${name}`).join(' ')} ${typed}`;
}

function withOperand(line: readonly string[], operand: string): string[] {
  const verb = verbOf(line);
  if (verb === undefined) return [...line];
  const words = wordsOf(line, verb);
  const at = words.findIndex(({ kind }) => kind === 'operand');
  return at < 0 ? [...line, operand] : textsOf(words).map((text, index) => (index === at ? operand : text));
}

/** In place of its first occurrence, or at the end. */
function withFlag(line: readonly string[], name: string, value: string | null): string[] {
  const given = value === null ? [] : isKnownSwitch(name) ? [`--${name}`] : [`--${name}`, value];
  const result: string[] = [];
  let isPlaced = false;
  for (let at = 0; at < line.length; at += 1) {
    const word = line[at] ?? '';
    if (word !== `--${name}` && !word.startsWith(`--${name}=`)) {
      result.push(word);
      continue;
    }
    if (!isPlaced) result.push(...given);
    isPlaced = true;
    if (word === `--${name}` && hasValue(name, line[at + 1])) at += 1;
  }
  return isPlaced ? result : [...result, ...given];
}

function placesOf(argv: readonly string[], command: readonly string[]): string[] {
  const verb = VERBS.find((name) => name === command[0]);
  const taken = PLACES.filter((name) => verb !== undefined && flagsOf(verb).includes(name));
  return taken.flatMap((name) => {
    const at = argv.findIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`));
    if (at < 0) return [];
    return argv.slice(at, argv[at] === `--${name}` ? at + 2 : at + 1);
  });
}

function isKnownSwitch(name: string): boolean {
  const known = FLAG_NAMES.find((flag) => flag === name);
  return known !== undefined && isSwitch(known);
}

function hasValue(name: string, next: string | undefined): boolean {
  return !isKnownSwitch(name) && next !== undefined && !next.startsWith('--');
}

/** As a POSIX shell takes it for one word. */
function quoted(word: string): string {
  return /^[\p{L}\p{N}_@%+=:,./-]+$/u.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
