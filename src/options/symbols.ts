/** Parses the value of `--symbols`: names, globs, exclusions, and lists of them. */
import { usage } from '../model/errors.js';
import { given } from './parsers.js';
import type { Parse } from './parsers.js';

/** A file's name has at most 255 bytes: up to three for each of these, and then the interval, the date and the ending. */
export const MOST_SYMBOL_CHARACTERS = 60;

/** Longer lists of symbols are not repeated in corrected commands. */
export const MOST_SHOWN = 20;

export interface SymbolPatterns {
  /** Names. Each must exist. */
  readonly names: readonly string[];
  readonly globs: readonly string[];
  readonly exclusions: readonly string[];
}

/** A list of words in a file (`@FILE`) or on standard input (`-`). */
export type SymbolList = { readonly file: string } | 'stdin';

export interface SymbolsOption extends SymbolPatterns {
  readonly text: string;
  /** They hold further words. They are read when the symbols are selected, because a pipe can be read only once. */
  readonly lists: readonly SymbolList[];
}

/** Commas separate. Throws a usage error without any symbol or list, and for names that an archive key cannot contain. */
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

/** The patterns of an option and of the words in its lists. Throws usage errors like `symbols`. */
export function withListed(option: SymbolPatterns, listed: readonly string[], where: string): SymbolPatterns {
  const words = [
    ...option.names,
    ...option.globs,
    ...option.exclusions.map((pattern) => `!${pattern}`),
  ].concat(listed);
  refuseNothing(words, where);
  for (const word of words) refuseUnsafe(word, words, where);
  return patternsOf(words);
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

function refuseNothing(words: readonly string[], where: string): void {
  if (words.some((word) => !word.startsWith('!'))) return;
  throw usage(
    `${where} ${words.length === 0 ? 'names no symbol' : 'has only exclusions'}`,
    `${given(where, 'BTCUSDT,ETHUSDT')} or ${given(where, "'*USDT'")}`,
    { flags: { symbols: ['*', ...words].join(',') } },
  );
}

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

/** White space between long names replaces a comma; `BTC USDT` is one name. */
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
