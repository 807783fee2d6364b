/** The value of `--symbols`: names, globs, exclusions, and lists of them. Parses the value, and reads the lists. */
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { errnoOf, usage } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { given } from './parsers.js';
import type { Parse } from './parsers.js';

/** A file name has at most 255 bytes: up to three for each character of the symbol, the others for interval, date and ending. */
export const MOST_SYMBOL_CHARACTERS = 60;

/** Longer lists of symbols are not repeated in corrected commands. */
export const MOST_SHOWN = 20;

/** The words of `--symbols` by kind. */
export interface SymbolPatterns {
  /** Names. Each must exist. */
  readonly names: readonly string[];
  readonly globs: readonly string[];
  readonly exclusions: readonly string[];
}

/** A list of words in a file (`@FILE`) or on standard input (`-`). */
type SymbolList = { readonly file: string } | 'stdin';

/** The parsed value of `--symbols`. */
export interface SymbolsOption extends SymbolPatterns {
  /** The value as it was given. */
  readonly text: string;
  /** Lists of further words. They are read when the symbols are selected, so that `--print-options` does not wait for a pipe. */
  readonly lists: readonly SymbolList[];
}

/**
 * Commas separate words. Throws a usage error if there is neither a list nor a word that selects symbols, and for words that an
 * archive key cannot contain.
 */
export const symbols: Parse<SymbolsOption> = (text, where) => {
  const parts = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const lists = parts.filter(isList).map((part) => (part === '-' ? 'stdin' : { file: part.slice(1) }));
  const words = parts.filter((part) => !isList(part));
  if (lists.length === 0) refuseNothing(words, where);
  for (const word of words) refuseUnsafe(word, parts, where);
  return { text, lists, ...patternsOf(words) };
};

function isList(part: string): boolean {
  return part === '-' || part.startsWith('@');
}

function patternsOf(words: readonly string[]): SymbolPatterns {
  const selecting = words
    .filter((word) => !word.startsWith('!'))
    .map((word) => (word === 'all' ? '*' : word));
  return {
    names: unique(selecting.filter((word) => !isGlob(word))),
    globs: unique(selecting.filter(isGlob)),
    exclusions: unique(words.filter((word) => word.startsWith('!')).map((word) => word.slice(1))),
  };
}

function isGlob(word: string): boolean {
  return /[*?[\]{}]/.test(word);
}

function unique(words: readonly string[]): string[] {
  return [...new Set(words)];
}

/** Throws a usage error if no word selects symbols. */
function refuseNothing(words: readonly string[], where: string): void {
  if (words.some((word) => !word.startsWith('!'))) return;
  throw usage(
    `${where} ${words.length === 0 ? 'names no symbol' : 'has only exclusions'}`,
    `${given(where, 'BTCUSDT,ETHUSDT')} or ${given(where, "'*USDT'")}`,
    { flags: { symbols: ['*', ...words].join(',') } },
  );
}

/** Throws a usage error for a word that cannot be part of an archive key. `words`: all words, for the corrected value. */
function refuseUnsafe(word: string, words: readonly string[], where: string): void {
  if (
    // eslint-disable-next-line no-control-regex -- the expression must match control characters
    /[\u0000-\u0020\u007f/\\%]/.test(word) ||
    /^!?\.+$/.test(word) ||
    word === '!' ||
    word.length > MOST_SYMBOL_CHARACTERS
  ) {
    throw usage(
      `${where}: ${JSON.stringify(word)} is not a symbol`,
      'symbols look like BTCUSDT, BTCUSD_PERP or 币安人生USDT',
      words.length > MOST_SHOWN
        ? undefined
        : { flags: { symbols: words.map((other) => (other === word ? cleaned(word) : other)).join(',') } },
    );
  }
}

/** White space between long names means a comma; `BTC USDT` is one name. */
function cleaned(word: string): string {
  const names = word.split(/\s+/).map(lettersOf);
  return names.every((name) => name.length >= SHORTEST_SYMBOL)
    ? names.join(',')
    : lettersOf(word) || 'BTCUSDT';
}

const SHORTEST_SYMBOL = 5;

function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}_]/gu, '').toUpperCase();
}

// The lists.

/** Reads the content of a list. */
export type ReadList = (list: SymbolList) => Promise<string>;

/** The patterns of the option and of its lists. Throws the usage errors of the parser, and one for a list that cannot be read. */
export async function readPatterns(option: SymbolsOption, read: ReadList): Promise<SymbolPatterns> {
  if (option.lists.length === 0) return option;
  const exclusions = option.exclusions.map((pattern) => `!${pattern}`);
  let words = [...option.names, ...option.globs, ...exclusions];
  for (const list of option.lists) words = words.concat(listWords(await read(list)));
  // No corrected command is printed: the mistake is in the command before the pipe.
  if (words.length === 0 && option.lists.includes('stdin')) throw usage('--symbols: stdin has no symbol');
  refuseNothing(words, '--symbols');
  for (const word of words) refuseUnsafe(word, words, '--symbols');
  return patternsOf(words);
}

/** Commas, white space and lines separate; `#` starts a comment. */
function listWords(content: string): string[] {
  return content
    .split(/\r?\n/)
    .flatMap((line) => (line.split('#')[0] ?? '').split(/[\s,]+/))
    .filter((word) => word !== '');
}

/** Reads lists for a command line. */
export function readLists(io: Io): ReadList {
  return endedBySignals(io, (list) => (list === 'stdin' ? readAll(io.stdin) : readSymbolFile(list)));
}

/**
 * A FIFO without a writer blocks a thread, and `process.exit` waits for that thread. A signal therefore kills the process; no
 * request was sent before.
 */
export function endedBySignals(io: Pick<Io, 'kill' | 'onSignal'>, read: ReadList): ReadList {
  return async (list) => {
    const release = io.onSignal((signal) => {
      io.kill(signal);
    });
    try {
      return await read(list);
    } finally {
      release();
    }
  };
}

/** Throws usage errors for a file that cannot be read, and for standard input, which exists only on a command line. */
export const readSymbolFile: ReadList = async (list) => {
  if (list === 'stdin')
    throw usage(
      'symbols: "-" stands for the standard input of a command line',
      'write @FILE for a list in a file',
    );
  try {
    return await readFile(list.file, 'utf8');
  } catch (error) {
    throw usage(
      `--symbols: cannot read ${list.file} (${errnoOf(error)})`,
      'write @FILE for a list of symbols in a file',
    );
  }
};
