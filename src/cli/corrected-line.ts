/** The command line that was typed, with a correction: a line that can be typed as it is. */
import type { Correction } from '../errors.js';
import { FLAG_NAMES, flagsOf, isSwitch, VERBS } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';

/** Flags that say where things are: another command is typed with them too. */
const PLACES: readonly FlagName[] = ['out', 'archive-url', 'listing-url', 'now', 'config'];

export function correctedLine(argv: readonly string[], correction: Correction): string {
  const { flags = {}, words = {}, verb, command } = correction;
  let line =
    command === undefined
      ? [...(verb === undefined ? [] : [verb]), ...argv]
      : [...command, ...placesOf(argv, command)];
  line = line.flatMap((word) => {
    const [name = '', value] = word.split(/=(.*)/s);
    const key = Object.hasOwn(words, word) ? word : name;
    if (!Object.hasOwn(words, key)) return [word];
    const instead = words[key];
    if (instead === null || instead === undefined) return [];
    return [key === word || value === undefined ? instead : `${instead}=${value}`];
  });
  for (const [name, value] of Object.entries(flags)) line = withFlag(line, name, value);
  return ['cryptodl', ...line].map(quoted).join(' ');
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
