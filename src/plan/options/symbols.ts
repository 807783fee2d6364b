/** The value of `--symbols`: names, globs, exclusions, and lists of them. Parses the value, and reads the lists. */
import { usage } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import { readText, readTextFile } from '../../text/read-text.js';
import type { Parse, ReadList, WordList } from './parsers.js';

/** A file name has at most 255 bytes: up to three for each character of the symbol, the others for interval, date and ending. */
export const MOST_SYMBOL_CHARACTERS = 60;

export interface SymbolPatterns {
  /** Names. Each must exist. */
  readonly names: readonly string[];
  readonly globs: readonly string[];
  readonly exclusions: readonly string[];
}

interface SymbolWords extends SymbolPatterns {
  readonly lists: readonly WordList[];
}

export class SymbolsOption {
  #patterns: Promise<SymbolPatterns> | undefined;

  constructor(
    private readonly words: SymbolWords,
    private readonly readList: ReadList,
  ) {}

  /**
   * The patterns of the words and of their lists. The first call reads the lists, so that `--print-options` does not wait for a pipe. Rejects with
   * the usage errors of the parser for the words of a list, and with one for a list that cannot be read.
   */
  patterns(): Promise<SymbolPatterns> {
    return (this.#patterns ??= withLists(this.words, this.readList));
  }
}

/**
 * Commas and white space separate words. Throws a usage error if there is neither a list nor a word that selects symbols, and for words
 * that an archive key cannot contain.
 */
export const symbolsOption: Parse<SymbolsOption> = (text, where, { readList = readSymbolFile } = {}) =>
  new SymbolsOption(wordsOf(text, where), readList);

function wordsOf(text: string, where: string): SymbolWords {
  const parts = text
    .split(',')
    .map((part) => part.trim())
    // The name of a file may have blanks.
    .flatMap((part) => (isList(part) ? part : part.split(/\s+/)))
    .filter((part) => part !== '');
  const lists = parts.filter(isList).map((part) => (part === '-' ? 'stdin' : { file: part.slice(1) }));
  if (parts.includes('@')) throw usage(`${where}: "@" needs the name of a file`, 'for example @universe.txt');
  const patterns = patternsOf(
    parts.filter((part) => !isList(part)),
    where,
  );
  if (lists.length === 0) refuseNothing(patterns, where);
  return { lists, ...patterns };
}

/** Whether `--symbols` reads this text as one exact name. A folder of the lake may have any name. */
export function isExactName(text: string): boolean {
  if (text.includes(',') || text.trim() !== text || isList(text)) return false;
  try {
    return wordsOf(text, '--symbols').names.join() === text;
  } catch {
    return false;
  }
}

const isList = (part: string): boolean => part === '-' || part.startsWith('@');

function patternsOf(typed: readonly string[], where: string): SymbolPatterns {
  const words = typed.map(symbolOfPair);
  for (const word of words) refuseUnsafe(word, where);
  const selecting = words
    .filter((word) => !word.startsWith('!'))
    .map((word) => (word === 'all' ? '*' : word));
  return {
    names: unique(selecting.filter((word) => !isGlob(word))),
    globs: unique(selecting.filter(isGlob)),
    exclusions: unique(words.filter((word) => word.startsWith('!')).map((word) => word.slice(1))),
  };
}

const isGlob = (word: string): boolean => /[*?[\]{}]/.test(word);

const unique = (words: readonly string[]): string[] => [...new Set(words)];

function refuseNothing({ names, globs }: SymbolPatterns, where: string): void {
  if (names.length + globs.length > 0) return;
  throw usage(`${where} names no symbol`, "for example BTCUSDT,ETHUSDT or '*USDT'");
}

/** Throws a usage error for a word that cannot be part of an archive key. */
function refuseUnsafe(word: string, where: string): void {
  if (
    // eslint-disable-next-line no-control-regex -- the expression must match control characters
    !/[\u0000-\u0020\u007f/\\%]/.test(word) &&
    !/^!?\.*$/.test(word) &&
    word.length <= MOST_SYMBOL_CHARACTERS
  )
    return;
  throw usage(
    `${where}: ${JSON.stringify(word)} is not a symbol`,
    'for example BTCUSDT, BTCUSD_PERP or 币安人生USDT; @FILE reads a list',
  );
}

/** A base and a quote with a slash between them. As in ccxt, the asset of settlement may follow. */
const PAIR = /^(!?[\p{L}\p{N}_*?]+)\/([\p{L}\p{N}_*?]+)(?::\w+)?$/u;

/** `BTC/USDT` and `BTC/USDT:USDT` are BTCUSDT. Other words stay. */
const symbolOfPair = (word: string): string =>
  word.replace(PAIR, (_, base: string, quote: string) => (base + quote).toUpperCase());

async function withLists({ lists, ...typed }: SymbolWords, read: ReadList): Promise<SymbolPatterns> {
  if (lists.length === 0) return typed;
  let words: string[] = [];
  for (const list of lists) words = words.concat(listWords(await read(list)));
  const listed = patternsOf(words, '--symbols');
  const all = (kind: keyof SymbolPatterns): string[] => unique([...typed[kind], ...listed[kind]]);
  const patterns = { names: all('names'), globs: all('globs'), exclusions: all('exclusions') };
  refuseNothing(patterns, '--symbols');
  return patterns;
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

const cellsOf = (line: string): string[] =>
  line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'));

/**
 * Reads the lists of a command line. A FIFO without a writer blocks a thread, and `process.exit` waits for that thread. A signal therefore kills
 * the process; no request was sent before.
 */
export function listReader(io: Pick<Io, 'kill' | 'onSignal' | 'stdin'>): ReadList {
  return async (list) => {
    const release = io.onSignal((signal) => io.kill(signal));
    try {
      return await (list === 'stdin' ? readText(io.stdin) : readSymbolFile(list));
    } finally {
      release();
    }
  };
}

/** Throws usage errors for a file that cannot be read, and for standard input, which exists only on a command line. */
const readSymbolFile: ReadList = async (list) => {
  if (list === 'stdin')
    throw usage(
      'symbols: "-" stands for the standard input of a command line',
      'give an array, or @FILE for a list in a file',
    );
  return readTextFile(list.file, '--symbols', 'name a file with a list of symbols: --symbols @FILE');
};
