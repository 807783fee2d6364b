/** Messages and hints name flags and commands. Here, flags become options, and commands become calls of the library. */
import type { Correction } from '../model/errors.js';
import { camelCase, FLAG_NAMES, flagSpec, isSwitch } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { LIBRARY_VERBS, optionsOf } from './options.js';

const COMMAND = /(?<![\w-])cryptodl ([a-z]+)/y;
const OPERAND = / ([a-z]+)/y;
const FLAG = /(?<![\w-])--([a-z][\w-]*)/y;
/** In quotes, or without the punctuation that follows it. */
const VALUE = / ('[^']*'|[^\s();"']*[^\s();:,."'])/y;

/** `--cadence monthly` → `cadence monthly`; `cryptodl verify --deep` → `verify({ deep: true })`. */
export function messageInOptionNames(text: string): string {
  return renamed(text, (name, value) => [camelCase(name), ...(value === undefined ? [] : [value])].join(' '));
}

/** `--cadence monthly` → `cadence: 'monthly'`. */
export function hintInOptionNames(text: string): string {
  // Flags in a row become entries of one object.
  return renamed(text, entryOrName).replaceAll(/(?<=: (?:'[^']*'|\d+)) (?=[a-zA-Z]+: (?:'|\d))/g, ', ');
}

const entryOrName: Show = (name, value) => (value === undefined ? camelCase(name) : entryOf(name, value));

/** The corrected options as a hint; undefined if the correction names no options. */
export function correctionInOptionNames({ flags = {}, command }: Correction): string | undefined {
  if (command !== undefined) return hintInOptionNames(`cryptodl ${command.join(' ')}`);
  const known = FLAG_NAMES.filter((name) => flags[name] !== undefined);
  const entries = known.flatMap((name) => {
    const value = flags[name] ?? null;
    return value === null ? [] : [entryOf(name, value)];
  });
  const removed = known.filter((name) => flags[name] === null).map(camelCase);
  const parts = [...entries, ...(removed.length === 0 ? [] : [`without ${removed.join(', ')}`])];
  return parts.length === 0 ? undefined : parts.join(', ');
}

type Show = (name: FlagName, value: string | undefined) => string;

/** Unknown flags, and commands that the library lacks, stay. */
function renamed(text: string, show: Show): string {
  let result = '';
  for (let at = 0; at < text.length;) {
    const { shown, next } = commandAt(text, at) ??
      flagAt(text, at, show) ?? { shown: text[at], next: at + 1 };
    result += shown;
    at = next;
  }
  return result;
}

interface Part {
  readonly shown: string;
  /** The position after the part. */
  readonly next: number;
}

/** A command as a call: the verb, and the operand and flags that follow it. */
function commandAt(text: string, at: number): Part | undefined {
  const command = matchAt(COMMAND, text, at);
  if (command === undefined) return undefined;
  const verb = LIBRARY_VERBS.find((name) => name === command.found);
  const known = verb === undefined ? [] : optionsOf(verb);
  const operand = verb === 'list' ? matchAt(OPERAND, text, command.next) : undefined;
  let next = operand?.next ?? command.next;
  const entries: string[] = [];
  let isKnown = verb !== undefined;
  for (let flag = readFlag(text, next + 1); flag !== undefined; flag = readFlag(text, next + 1)) {
    entries.push(entryOf(flag.name, flag.value ?? (isSwitch(flag.name) ? 'true' : '…')));
    isKnown &&= known.includes(flag.name);
    ({ next } = flag);
  }
  if (!isKnown) return { shown: text.slice(at, next), next };
  const operands = operand === undefined ? [] : [literalOf(operand.found)];
  const options = entries.length === 0 ? [] : [`{ ${entries.join(', ')} }`];
  return { shown: `${verb ?? ''}(${[...operands, ...options].join(', ')})`, next };
}

function flagAt(text: string, at: number, show: Show): Part | undefined {
  const flag = readFlag(text, at);
  return flag === undefined ? undefined : { shown: show(flag.name, flag.value), next: flag.next };
}

/** A known flag, with the next word if that looks like its value. */
function readFlag(
  text: string,
  at: number,
): { readonly name: FlagName; readonly value: string | undefined; readonly next: number } | undefined {
  const flag = matchAt(FLAG, text, at);
  const name = FLAG_NAMES.find((known) => known === flag?.found);
  if (flag === undefined || name === undefined) return undefined;
  const value = isSwitch(name) ? undefined : matchAt(VALUE, text, flag.next);
  return value !== undefined && isValue(name, value.found)
    ? { name, value: value.found, next: value.next }
    : { name, value: undefined, next: flag.next };
}

/** The first group of a sticky expression at a position of the text. */
function matchAt(
  pattern: RegExp,
  text: string,
  at: number,
): { readonly found: string; readonly next: number } | undefined {
  const sticky = new RegExp(pattern);
  sticky.lastIndex = at;
  const found = sticky.exec(text)?.[1];
  return found === undefined ? undefined : { found, next: sticky.lastIndex };
}

/** Other words after a flag belong to the sentence. */
function isValue(name: FlagName, word: string): boolean {
  return flagSpec(name).choices?.includes(word) === true || /^[^(].*[0-9A-Z*/@]|^'|^[0-9A-Z*/@]/.test(word);
}

function entryOf(name: FlagName, value: string): string {
  return `${camelCase(name)}: ${literalOf(value, isSwitch(name))}`;
}

/** A value as JavaScript. */
function literalOf(value: string, isBoolean = false): string {
  if (isBoolean || /^\d+$/.test(value)) return value;
  return value.startsWith("'") ? value : `'${value}'`;
}
