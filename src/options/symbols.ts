/** The value of `--symbols`: names, globs, exclusions, and lists of them. Parses the value, and reads the lists. */
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { errnoOf, usage } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { reasonOf, unreadableHint } from '../text/path-faults.js';
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
  if (parts.includes('@'))
    throw usage(`${where}: "@" needs the name of a file`, given(where, '@universe.txt'));
  for (const word of words) refuseUnsafe(word, parts, where);
  if (lists.length === 0) refuseNothing(words, where);
  return { text, lists, ...patternsOf(words) };
};

/** Whether `--symbols` reads this text as one exact name. A folder of the lake may have any name. */
export function isExactName(text: string): boolean {
  if (text.includes(',') || text.trim() !== text || isList(text)) return false;
  try {
    return symbols(text, '--symbols').names.join() === text;
  } catch {
    return false;
  }
}

/** Word processors put them in place of straight quotes, and a shell keeps them. */
const CURLY_QUOTES = /[\u2018\u2019\u201c-\u201e]/g;

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
    // The meant symbols are not known, and all symbols are more than the user asked for.
    words.length === 0 || words.includes('!all') || words.includes('!*')
      ? undefined
      : { flags: { symbols: ['*', ...words].join(',') } },
  );
}

/** Throws a usage error for a word that cannot be part of an archive key. `words`: all words, for the corrected value. */
function refuseUnsafe(word: string, words: readonly string[], where: string): void {
  const curly = word.replaceAll(CURLY_QUOTES, '');
  if (curly !== word)
    throw usage(
      `${where}: ${JSON.stringify(word)} has curly quotes`,
      undefined,
      curly === '' || words.length > MOST_SHOWN
        ? undefined
        : { flags: { symbols: words.map((other) => other.replaceAll(CURLY_QUOTES, '')).join(',') } },
    );
  if (word.includes('.') && statSync(word, { throwIfNoEntry: false })?.isFile() === true)
    throw usage(
      `${where}: ${word} is a file`,
      `@ reads a list of symbols: ${given(where, `@${word}`)}`,
      words.length > MOST_SHOWN
        ? undefined
        : { flags: { symbols: words.map((other) => (other === word ? `@${word}` : other)).join(',') } },
    );
  if (
    // eslint-disable-next-line no-control-regex -- the expression must match control characters
    /[\u0000-\u0020\u007f/\\%]/.test(word) ||
    /^!?\.+$/.test(word) ||
    word === '!' ||
    word.length > MOST_SYMBOL_CHARACTERS
  ) {
    const meant = meantBy(word);
    throw usage(
      `${where}: ${JSON.stringify(word)} is not a symbol`,
      'symbols look like BTCUSDT, BTCUSD_PERP or 币安人生USDT',
      words.length > MOST_SHOWN || meant === undefined
        ? undefined
        : { flags: { symbols: words.map((other) => (other === word ? meant : other)).join(',') } },
    );
  }
}

/**
 * The symbols that a word means: `BTC/USDT`, `BTC/USDT:USDT`, `BTC USDT`, or several with white space between them. Undefined for
 * another path or text.
 */
function meantBy(word: string): string | undefined {
  const names = word.trim().split(/\s+/).map(symbolOfPair);
  if (names.length === 2 && names.join('').length < 2 * SHORTEST_SYMBOL && !word.includes('/'))
    return names.includes(undefined) ? undefined : names.join('');
  return names.includes(undefined) ? undefined : names.join(',');
}

/**
 * A symbol, or a base and a quote with a slash between them. As in ccxt, the asset of settlement and the date of delivery may
 * follow: `BTC/USDT:USDT`, `BTC/USD:BTC` (coin-margined), `BTC/USDT:USDT-240329`.
 */
const PAIR = /^([\p{L}\p{N}_*?]+)(?:\/([\p{L}\p{N}_*?]+)(?::(\w+)(?:-(\d{6}))?)?)?$/u;

function symbolOfPair(word: string): string | undefined {
  const [pair, base = '', quote = '', settle, date] = PAIR.exec(word) ?? [];
  if (pair === undefined) return undefined;
  const contract = date ?? (settle === base ? 'PERP' : undefined);
  return `${base}${quote}${contract === undefined ? '' : `_${contract}`}`.toUpperCase();
}

/** Two shorter words, like `BTC USDT`, are base and quote of one symbol. */
const SHORTEST_SYMBOL = 5;

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

/** Commas, white space and lines separate; `#` starts a comment. Of a CSV file with a column `symbol`, the words are the cells of this column. */
function listWords(content: string): string[] {
  const lines = content
    .split(/\r?\n/)
    .map((line) => (line.split('#')[0] ?? '').trim())
    .filter((line) => line !== '');
  const column = cellsOf(lines[0] ?? '').indexOf(SYMBOL_COLUMN);
  if (column < 0) return lines.flatMap((line) => line.split(/[\s,]+/)).filter((word) => word !== '');
  return unique(lines.slice(1).map((line) => cellsOf(line)[column] ?? '')).filter((word) => word !== '');
}

/** The name of the column in the CSV of `universe` and `coverage`. Symbols are in capitals. */
const SYMBOL_COLUMN = 'symbol';

function cellsOf(line: string): string[] {
  return line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'));
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
      'give an array, or @FILE for a list in a file',
    );
  try {
    const bytes = await readFile(list.file);
    if (!isUtf16(bytes)) return bytes.toString('utf8');
  } catch (error) {
    throw usage(
      `--symbols: cannot read ${list.file} (${reasonOf(errnoOf(error))})`,
      unreadableHint(errnoOf(error), list.file) ?? 'name a file with a list of symbols: --symbols @FILE',
    );
  }
  throw usage(`--symbols: ${list.file} is UTF-16`, 'save it as UTF-8');
};

/** Whether the text begins with the byte order mark of UTF-16, as editors on Windows write it. */
function isUtf16(bytes: Buffer): boolean {
  const mark = bytes.subarray(0, 2).toString('hex');
  return mark === 'fffe' || mark === 'feff';
}
