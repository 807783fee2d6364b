/** Matches symbols with the patterns of `--symbols` and with quote assets. */
import picomatch from 'picomatch';
import { usage } from '../model/errors.js';
import type { Correction } from '../model/errors.js';
import { MOST_SHOWN } from '../options/symbols.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { nearest } from '../text/did-you-mean.js';

/** The result of patterns and quotes. */
export interface MatchedSymbols {
  readonly symbols: readonly string[];
  /** Symbols that match a name or glob, and also an exclusion. */
  readonly excluded: readonly string[];
}

/**
 * The available symbols that patterns and quotes select. `what` and `owner` describe the available symbols in messages. Throws usage
 * errors for unknown names, with the nearest name, and for an empty result.
 */
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

/** The selected symbols without a list of the available ones; undefined if there are globs. */
export function namesOnly(patterns: SymbolPatterns, quotes: readonly string[]): MatchedSymbols | undefined {
  return patterns.globs.length > 0
    ? undefined
    : selectSymbols(patterns, quotes, patterns.names, 'the given ones');
}

/** The quotes in upper case, if a symbol then matches. */
function quoteLike(quotes: readonly string[], symbols: readonly string[]): string | undefined {
  const upper = quotes.map((quote) => quote.toUpperCase());
  return upper.some((quote) => symbols.some((symbol) => hasQuote(symbol, quote)))
    ? upper.join(',')
    : undefined;
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

const SEPARATORS = /[/\-_:. ]/g;

/** The symbol that a wrong name means: `btc-usdt`, `BTC`, a name with a typo, or `BTCUSDT` in a market with `BTCUSD_PERP`. */
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
    ? 'there is no symbol to select'
    : `for example ${available.slice(0, 3).join(', ')}`;
}

function exampleCorrection(available: readonly string[]): Correction | undefined {
  const [first] = available;
  return first === undefined ? undefined : { flags: { symbols: first } };
}
