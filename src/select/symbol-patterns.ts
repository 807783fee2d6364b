/** Parses `--symbols`, reads its lists, and matches symbols with patterns and quote assets. */
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import picomatch from 'picomatch';
import { errnoOf, usage } from '../model/errors.js';
import type { Correction } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { nearest } from '../text/did-you-mean.js';

/** A file's name has at most 255 bytes: up to three for each of these, and then the interval, the date and the ending. */
export const MOST_SYMBOL_CHARACTERS = 60;

export interface SymbolPatterns {
  /** Names. Each must exist. */
  readonly names: readonly string[];
  readonly globs: readonly string[];
  readonly exclusions: readonly string[];
}

export interface MatchedSymbols {
  readonly symbols: readonly string[];
  /** Symbols that match a name or glob, and an exclusion. */
  readonly excluded: readonly string[];
}

/** Reads `@FILE` and `-`. */
export type ReadList = (source: { readonly file: string } | 'stdin') => Promise<string>;

/** Throws a usage error for an empty list, and for names that an archive key cannot contain. */
export async function readPatterns(values: readonly string[], read: ReadList): Promise<SymbolPatterns> {
  const words: string[] = [];
  const parts = values.flatMap((value) => value.split(',')).map((part) => part.trim());
  for (const part of parts) {
    if (part === '-') for (const each of listWords(await read('stdin'))) words.push(each);
    else if (part.startsWith('@'))
      for (const each of listWords(await read({ file: part.slice(1) }))) words.push(each);
    else if (part !== '') words.push(part);
  }
  const chosen = words.filter((word) => !word.startsWith('!'));
  if (chosen.length === 0) {
    // No command line is offered: the mistake is in the command before the pipe.
    if (words.length === 0 && parts.includes('-')) throw usage('--symbols: stdin has no symbol');
    const what = words.length === 0 ? 'names no symbol' : 'has only exclusions';
    throw usage(`--symbols ${what}`, "--symbols BTCUSDT,ETHUSDT or --symbols '*USDT'", {
      flags: { symbols: ['*', ...words].join(',') },
    });
  }
  const patterns = chosen.map((word) => (word === 'all' ? '*' : word));
  for (const word of words) refuseUnsafe(word, words);
  return {
    names: unique(patterns.filter((word) => !isGlob(word))),
    globs: unique(patterns.filter(isGlob)),
    exclusions: unique(words.filter((word) => word.startsWith('!')).map((word) => word.slice(1))),
  };
}

/** Commas, white space and lines separate; `#` starts a comment. */
function listWords(content: string): string[] {
  return content
    .split(/\r?\n/)
    .flatMap((line) => (line.split('#')[0] ?? '').split(/[\s,]+/))
    .filter((word) => word !== '');
}

function isGlob(word: string): boolean {
  return /[*?[\]{}]/.test(word);
}

function refuseUnsafe(word: string, words: readonly string[]): void {
  if (
    // eslint-disable-next-line no-control-regex -- the expression must match control characters
    /[\u0000-\u0020\u007f/\\%]/.test(word) ||
    /^!?\.+$/.test(word) ||
    word === '!' ||
    word.length > MOST_SYMBOL_CHARACTERS
  ) {
    throw usage(
      `--symbols: ${JSON.stringify(word)} is not a symbol`,
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

function unique(words: readonly string[]): string[] {
  return [...new Set(words)];
}

/** Selects symbols. Throws usage errors for unknown names, with the nearest name, and for an empty result. */
export function selectSymbols(
  patterns: SymbolPatterns,
  quotes: readonly string[],
  available: readonly string[],
  what: string,
  owner = 'the archive',
): MatchedSymbols {
  const known = new Set(available);
  const unknown = patterns.names.filter((name) => !known.has(name));
  if (unknown.length > 0) throw unknownSymbols(patterns, unknown, available, `${owner} has no`, what);
  const matchesGlob = matcher(patterns.globs);
  const names = new Set(patterns.names);
  const chosen = available.filter((symbol) => names.has(symbol) || matchesGlob(symbol));
  if (chosen.length === 0) {
    throw usage(
      `--symbols ${patterns.globs.join(',')} matches none of the ${available.length} symbols of ${what}`,
      exampleOf(available),
      exampleCorrection(available),
    );
  }
  const quoted =
    quotes.length === 0 ? chosen : chosen.filter((symbol) => quotes.some((quote) => hasQuote(symbol, quote)));
  if (quoted.length === 0)
    throw usage(
      `--quote ${quotes.join(',')} matches none of the ${chosen.length} selected symbols`,
      exampleOf(chosen),
      { flags: { quote: quoteLike(quotes, chosen) ?? null } },
    );
  const isExcluded = matcher(patterns.exclusions);
  const symbols = quoted.filter((symbol) => !isExcluded(symbol));
  if (symbols.length === 0)
    throw usage(
      `the exclusions of --symbols exclude all ${quoted.length} selected symbols`,
      undefined,
      exampleCorrection(quoted),
    );
  return { symbols, excluded: quoted.filter((symbol) => isExcluded(symbol)) };
}

/** The selection without a listing; undefined if there are globs. */
export function namesOnly(patterns: SymbolPatterns, quotes: readonly string[]): MatchedSymbols | undefined {
  return patterns.globs.length > 0
    ? undefined
    : selectSymbols(patterns, quotes, patterns.names, 'the given ones');
}

/** The quotes in upper case, if they then match. */
function quoteLike(quotes: readonly string[], symbols: readonly string[]): string | undefined {
  const upper = quotes.map((quote) => quote.toUpperCase());
  return upper.some((quote) => symbols.some((symbol) => hasQuote(symbol, quote)))
    ? upper.join(',')
    : undefined;
}

function matcher(globs: readonly string[]): (symbol: string) => boolean {
  return globs.length === 0 ? () => false : picomatch([...globs], { nonegate: true, dot: true });
}

/** `BTCUSDT_240329`, `BTCUSD_PERP` and `ICPUSDT_SETTLED` have their quote before the underscore. */
export function hasQuote(symbol: string, quote: string): boolean {
  const pair = (symbol.split('_')[0] ?? '').replace(/SETTLED\d*$/, '');
  return pair.endsWith(quote) && pair.length > quote.length;
}

function unknownSymbols(
  patterns: SymbolPatterns,
  unknown: readonly string[],
  available: readonly string[],
  hasNo: string,
  what: string,
): Error {
  const shown =
    unknown.slice(0, 5).join(', ') + (unknown.length > 5 ? ` and ${unknown.length - 5} more` : '');
  const instead = new Map(unknown.map((name) => [name, symbolLike(name, available)]));
  const near = [...new Set([...instead.values()].filter((name) => name !== undefined))].slice(0, 5);
  const names = patterns.names.map((name) => (instead.has(name) ? instead.get(name) : name));
  const words = [...names.filter((name) => name !== undefined), ...patterns.globs];
  const all = [...new Set(words), ...patterns.exclusions.map((glob) => `!${glob}`)];
  return usage(
    `${hasNo} ${shown} in ${what}`,
    near.length > 0 ? `did you mean ${near.join(', ')}?` : exampleOf(available),
    all.length > MOST_SHOWN
      ? undefined
      : words.length === 0
        ? exampleCorrection(available)
        : { flags: { symbols: all.join(',') } },
  );
}

/** Longer lists are not repeated in corrected commands. */
const MOST_SHOWN = 20;
const SEPARATORS = /[/\-_:. ]/g;

/** The symbol for a name like `btc-usdt`, `BTCUSDT` instead of `BTCUSD_PERP`, `BTC`, or with a typo. */
export function symbolLike(name: string, available: readonly string[]): string | undefined {
  const plain = name.replaceAll(SEPARATORS, '').toUpperCase();
  const pair = name.split('_')[0] ?? '';
  const begin = (start: string): string | undefined =>
    available
      .filter((symbol) => symbol.startsWith(start))
      .sort((a, b) => a.length - b.length)
      .at(0);
  return (
    available.find((symbol) => symbol.replaceAll(SEPARATORS, '').toUpperCase() === plain) ??
    available.find((symbol) => symbol === pair) ??
    begin(`${name.replace(/USDT$/, 'USD')}_`) ??
    nearest(name, available) ??
    available.find((symbol) => symbol === `${plain}USDT`) ??
    begin(plain)
  );
}

function exampleOf(available: readonly string[]): string {
  return available.length === 0
    ? 'the archive lists no symbol there'
    : `for example ${available.slice(0, 3).join(', ')}`;
}

function exampleCorrection(available: readonly string[]): Correction | undefined {
  const [first] = available;
  return first === undefined ? undefined : { flags: { symbols: first } };
}

export function readLists(io: Io): ReadList {
  return endedBySignals(io, (source) => (source === 'stdin' ? readAll(io.stdin) : readSymbolFile(source)));
}

/**
 * A FIFO without a writer blocks a thread, and `process.exit` waits for that thread. A signal therefore kills the process; no
 * request was sent before.
 */
export function endedBySignals(io: Pick<Io, 'kill' | 'onSignal'>, read: ReadList): ReadList {
  return async (source) => {
    const release = io.onSignal((signal) => {
      io.kill(signal);
    });
    try {
      return await read(source);
    } finally {
      release();
    }
  };
}

/** Throws usage errors for a file that cannot be read, and for standard input, which exists only on a command line. */
export const readSymbolFile: ReadList = async (source) => {
  if (source === 'stdin')
    throw usage(
      'symbols: "-" stands for the standard input of a command line',
      'write @FILE for a list in a file',
    );
  try {
    return await readFile(source.file, 'utf8');
  } catch (error) {
    throw usage(
      `--symbols: cannot read ${source.file} (${errnoOf(error)})`,
      'write @FILE for a list of symbols in a file',
    );
  }
};
