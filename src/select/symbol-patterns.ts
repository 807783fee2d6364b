/** Matches symbols with the patterns of `--symbols` and with quote assets. */
import picomatch from 'picomatch';
import { usage } from '../model/errors.js';
import { MOST_SHOWN } from '../options/symbols.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { nearest } from '../text/did-you-mean.js';

/** The result of patterns and quotes. */
export interface MatchedSymbols {
  readonly symbols: readonly string[];
  /** Symbols that match a name or glob, and also an exclusion. */
  readonly excluded: readonly string[];
  /** Texts about the words that select or exclude nothing. */
  readonly warnings: readonly string[];
}

/** The place of the available symbols in messages, and the treatment of names that it lacks. */
export interface SymbolOwner {
  /** `um klines` */
  readonly what: string;
  /** `the archive` by default. */
  readonly owner?: string;
  /** --skip-unknown: an unknown name is a warning instead of an error. */
  readonly skipUnknown?: boolean;
  /** Unavailable symbols, each with a dataset that has it (`um klines`), for messages. */
  readonly elsewhere?: ReadonlyMap<string, string> | undefined;
}

/**
 * The available symbols that patterns and quotes select. A glob or an exclusion that matches nothing is a warning. Throws usage
 * errors for unknown names, with the nearest name, and for an empty result.
 */
export function selectSymbols(
  patterns: SymbolPatterns,
  quotes: readonly string[],
  available: readonly string[],
  place: SymbolOwner,
): MatchedSymbols {
  const { what, owner = 'the archive', skipUnknown = false, elsewhere } = place;
  const known = new Set(available);
  const unknown = patterns.names.filter((name) => !known.has(name));
  if (unknown.length > 0 && !skipUnknown)
    throw unknownSymbols(patterns, unknown, available, { owner, what, elsewhere });
  const matchesGlob = matcher(patterns.globs);
  const names = new Set(patterns.names);
  const chosen = available.filter((symbol) => names.has(symbol) || matchesGlob(symbol));
  if (chosen.length === 0) {
    throw usage(
      patterns.globs.length === 0
        ? `${owner} has no ${firstWords(unknown)} in ${what}, so --skip-unknown leaves out all symbols`
        : `--symbols ${firstWords([...patterns.globs, ...unknown])} matches none of the ${available.length} symbols of ${what}`,
      exampleOf(available),
    );
  }
  const quoted =
    quotes.length === 0 ? chosen : chosen.filter((symbol) => quotes.some((quote) => hasQuote(symbol, quote)));
  if (quoted.length === 0) throw unmatchedQuotes(quotes, chosen);
  const isExcluded = matcher(patterns.exclusions);
  const symbols = quoted.filter((symbol) => !isExcluded(symbol));
  if (symbols.length === 0)
    throw usage(`the exclusions of --symbols exclude all ${quoted.length} selected symbols`);
  const leftOut = unknown.length === 0 ? [] : [`${owner} has no ${firstWords(unknown)} in ${what}: left out`];
  return {
    symbols,
    excluded: quoted.filter((symbol) => isExcluded(symbol)),
    warnings: [...leftOut, ...unmatchedTexts(patterns, available, known, what)],
  };
}

/** A text for the globs that match nothing, and one for the exclusions. */
function unmatchedTexts(
  { globs, exclusions }: SymbolPatterns,
  available: readonly string[],
  known: ReadonlySet<string>,
  what: string,
): string[] {
  const isUnmatched = (pattern: string): boolean =>
    !known.has(pattern) && !available.some(matcher([pattern]));
  const text = (words: readonly string[], does: string): string[] =>
    words.length === 0
      ? []
      : [`--symbols ${firstWords(words)} ${does} none of the ${available.length} symbols of ${what}`];
  return [
    ...text(globs.filter(isUnmatched), 'matches'),
    ...text(
      exclusions.filter(isUnmatched).map((pattern) => `!${pattern}`),
      'excludes',
    ),
  ];
}

const MOST_WORDS = 5;

/** The first words, and the number of the others. */
function firstWords(words: readonly string[]): string {
  const more = words.length > MOST_WORDS ? ` and ${words.length - MOST_WORDS} more` : '';
  return words.slice(0, MOST_WORDS).join(', ') + more;
}

/** The selected symbols without a list of the available ones; undefined if there are globs. */
export function namesOnly(patterns: SymbolPatterns, quotes: readonly string[]): MatchedSymbols | undefined {
  if (patterns.globs.length > 0) return undefined;
  // It is not known whether an exclusion matches a symbol of the archive.
  return { ...selectSymbols(patterns, quotes, patterns.names, { what: 'the named symbols' }), warnings: [] };
}

/** Quotes in lower case are corrected, if a symbol then matches. */
function unmatchedQuotes(quotes: readonly string[], symbols: readonly string[]): Error {
  const upper = quotes.map((quote) => quote.toUpperCase());
  const isMeant = upper.some((quote) => symbols.some((symbol) => hasQuote(symbol, quote)));
  return usage(
    `--quote ${quotes.join(',')} matches none of the ${symbols.length} selected symbols`,
    exampleOf(symbols),
    isMeant ? { flags: { quote: upper.join(',') } } : undefined,
  );
}

function matcher(globs: readonly string[]): (symbol: string) => boolean {
  return globs.length === 0 ? () => false : picomatch([...globs], { nonegate: true, dot: true });
}

/** The quote stands before the underscore or `SETTLED`: `BTCUSDT_240329`, `BTCUSD_PERP`, `ICPUSDT_SETTLED1`, `CVCUSDTSETTLED`. */
export function hasQuote(symbol: string, quote: string): boolean {
  const pair = (symbol.split('_')[0] ?? '').replace(/SETTLED\d*$/, '');
  return pair.endsWith(quote) && pair.length > quote.length;
}

function unknownSymbols(
  patterns: SymbolPatterns,
  unknown: readonly string[],
  available: readonly string[],
  { owner, what, elsewhere }: { owner: string } & Pick<SymbolOwner, 'what' | 'elsewhere'>,
): Error {
  // A list may have a million names, and each search reads all available symbols.
  const searched = unknown.slice(0, MOST_SHOWN);
  const instead = new Map(searched.map((name) => [name, symbolLike(name, available)]));
  const near = [...new Set([...instead.values()].filter((name) => name !== undefined))].slice(0, 5);
  const names = patterns.names.map((name) => (instead.has(name) ? instead.get(name) : name));
  const words = [...names.filter((name) => name !== undefined), ...patterns.globs];
  const all = [...new Set(words), ...patterns.exclusions.map((glob) => `!${glob}`)];
  return usage(
    `${owner} has no ${firstWords(unknown)} in ${what}${ownersText(unknown, elsewhere)}`,
    near.length > 0 ? `did you mean ${near.join(', ')}?` : exampleOf(available),
    // Without a near name for each, the line would leave out symbols that the user asked for.
    all.length > MOST_SHOWN || unknown.length > searched.length || [...instead.values()].includes(undefined)
      ? undefined
      : { flags: { symbols: all.join(',') } },
  );
}

/** `; um klines has BTCUSDT` */
function ownersText(names: readonly string[], elsewhere: SymbolOwner['elsewhere']): string {
  const found = names.filter((name) => elsewhere?.has(name));
  const owners = [...new Set(found.map((name) => elsewhere?.get(name)))];
  return found.length === 0 ? '' : `; ${owners.join(', ')} has ${firstWords(found)}`;
}

const SEPARATORS = /[/\-_:. ]/g;

/** The symbol that a wrong name means: `btc-usdt`, `BTC`, a name with a typo, `SHIBUSDT` where 1000SHIBUSDT is traded, or `BTCUSDT` in a market with `BTCUSD_PERP`. */
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
    available.find((symbol) => [`${plain}USDT`, `1000${plain}`].includes(symbol)) ??
    (plain === '' ? undefined : begin(plain))
  );
}

function exampleOf(available: readonly string[]): string {
  return available.length === 0
    ? 'there is no symbol to select'
    : `for example ${available.slice(0, 3).join(', ')}`;
}
