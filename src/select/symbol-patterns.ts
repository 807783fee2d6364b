/** What `--symbols` and `--quote` mean. */
import picomatch from 'picomatch';
import { usage } from '../model/errors.js';
import type { Correction } from '../model/errors.js';
import { nearest } from '../text/did-you-mean.js';

/** A file's name has at most 255 bytes: up to three for each of these, and then the interval, the date and the ending. */
export const MOST_SYMBOL_CHARACTERS = 60;

export interface SymbolPatterns {
  /** Names that must exist. */
  readonly names: readonly string[];
  readonly globs: readonly string[];
  readonly exclusions: readonly string[];
}

export interface Selection {
  readonly symbols: readonly string[];
  /** Symbols that a name or glob chose and an exclusion took away. */
  readonly excluded: readonly string[];
}

/** Reads `@FILE` and `-`; given by the command line. */
export type ReadList = (source: { readonly file: string } | 'stdin') => Promise<string>;

/** Throws a usage error for an empty list and for names that no archive key can hold. */
export async function readPatterns(values: readonly string[], read: ReadList): Promise<SymbolPatterns> {
  const words: string[] = [];
  for (const value of values) {
    for (const part of value.split(',')) {
      const word = part.trim();
      if (word === '-') for (const each of listWords(await read('stdin'))) words.push(each);
      else if (word.startsWith('@'))
        for (const each of listWords(await read({ file: word.slice(1) }))) words.push(each);
      else if (word !== '') words.push(word);
    }
  }
  const chosen = words.filter((word) => !word.startsWith('!'));
  if (chosen.length === 0) {
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
    // eslint-disable-next-line no-control-regex -- control characters are what is looked for
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

/** White space between names as long as symbols stands where a comma should; `BTC USDT` is one name. */
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

/**
 * Chooses among the archive's symbols. Throws a usage error for a name that the archive does not have, with the
 * nearest one, and when nothing is left.
 */
export function selectSymbols(
  patterns: SymbolPatterns,
  quotes: readonly string[],
  available: readonly string[],
  what: string,
  owner = 'the archive',
): Selection {
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
      `--quote ${quotes.join(',')} matches none of the ${chosen.length} chosen symbols`,
      exampleOf(chosen),
      { flags: { quote: quoteLike(quotes, chosen) ?? null } },
    );
  const isExcluded = matcher(patterns.exclusions);
  const symbols = quoted.filter((symbol) => !isExcluded(symbol));
  if (symbols.length === 0)
    throw usage(
      `the exclusions of --symbols take away all ${quoted.length} chosen symbols`,
      undefined,
      exampleCorrection(quoted),
    );
  return { symbols, excluded: quoted.filter((symbol) => isExcluded(symbol)) };
}

/** Without a listing only exact names can be chosen. */
export function namesOnly(patterns: SymbolPatterns, quotes: readonly string[]): Selection | undefined {
  return patterns.globs.length > 0
    ? undefined
    : selectSymbols(patterns, quotes, patterns.names, 'the given ones');
}

/** The quote in another spelling. */
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

/** A longer list is not typed again. */
const MOST_SHOWN = 20;
const SEPARATORS = /[/\-_:. ]/g;

/** What somebody may have meant: `btc-usdt`, `BTCUSDT` for `BTCUSD_PERP`, `BTC`, a typo. */
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
