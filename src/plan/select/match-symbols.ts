/** Matches `--symbols` and `--quote` with available symbols. */
import picomatch from 'picomatch';
import { grouped } from '../../model/by-name.js';
import { usage } from '../../model/errors.js';
import { listText } from '../../model/units.js';
import { didYouMean } from '../../text/did-you-mean.js';
import { isExactName, type SymbolPatterns } from '../options/symbols.js';

/** The place of the available symbols in messages, and the treatment of names that it lacks. */
export interface SymbolOwner {
  /** `um klines` */
  readonly what: string;
  /** `the archive` by default. */
  readonly owner?: string;
  /** --skip-unknown: an unknown name is a warning instead of an error. */
  readonly skipUnknown?: boolean;
  /** Called for words that select or exclude nothing. */
  readonly warn?: ((message: string) => void) | undefined;
}

/**
 * The available symbols that the names mean: `btcusdt`, `BTC-USDT` and `BTC` are BTCUSDT. An asset means one symbol per market. A
 * name that is available, or means nothing available, stays.
 */
export function meantNames(names: readonly string[], available: readonly string[]): readonly string[] {
  const known = new Set(available);
  if (names.every((name) => known.has(name))) return names;
  const byLetters = grouped(available, letters);
  const meant = names.flatMap((name) => {
    if (known.has(name)) return name;
    const same = byLetters.get(letters(name)) ?? [];
    // An asset lacks the usual quote of spot and USD-margined futures, or that of coin-margined ones.
    const usual = ['USDT', 'USD_PERP', '_PERP'].flatMap(
      (ending) => byLetters.get(letters(name + ending)) ?? [],
    );
    return same.length === 1 ? same : same.length === 0 && usual.length > 0 ? usual : name;
  });
  return [...new Set(meant)];
}

const letters = (symbol: string): string => symbol.replaceAll(/[/\-_:. ]/g, '').toUpperCase();

/**
 * The available symbols that patterns and quotes select. A glob or an exclusion that matches nothing is a warning. Throws usage
 * errors for unknown names, with the nearest name, and for an empty result.
 */
export function selectSymbols(
  given: SymbolPatterns,
  quotes: readonly string[],
  available: readonly string[],
  { what, owner = 'the archive', skipUnknown = false, warn = () => undefined }: SymbolOwner,
): readonly string[] {
  const patterns = { ...given, names: meantNames(given.names, available) };
  const known = new Set(available);
  const unknown = patterns.names.filter((name) => !known.has(name));
  if (unknown.length > 0 && !skipUnknown)
    throw usage(
      `${owner} has no ${listText(unknown)} in ${what}`,
      didYouMean(unknown[0] ?? '', available) ?? `${exampleOf(available)}; cryptodl list symbols shows all`,
    );
  const { globs, exclusions } = patterns;
  const matchesGlob = matcher(globs);
  const names = new Set(patterns.names);
  const isExcluded = matcher(exclusions);
  const symbols = available
    .filter((symbol) => names.has(symbol) || matchesGlob(symbol))
    .filter((symbol) => isOfQuotes(symbol, quotes))
    .filter((symbol) => !isExcluded(symbol));
  const excluding = exclusions.map((pattern) => `!${pattern}`);
  const matchesNone = (words: readonly string[], more = ''): string =>
    `--symbols ${listText(words)}${more} matches none of the ${available.length} symbols of ${what}`;
  const withQuotes = quotes.length === 0 ? '' : ` with --quote ${quotes.join(',')}`;
  if (symbols.length === 0)
    throw usage(matchesNone([...patterns.names, ...globs, ...excluding], withQuotes), exampleOf(available));
  const isUnmatched = (pattern: string): boolean =>
    !known.has(pattern) && !available.some(matcher([pattern]));
  const useless = exclusions.filter(isUnmatched).map((pattern) => `!${pattern}`);
  const unmatched = [...globs.filter(isUnmatched), ...useless];
  if (unknown.length > 0) warn(`${owner} has no ${listText(unknown)} in ${what}: left out`);
  if (unmatched.length > 0) warn(matchesNone(unmatched));
  return symbols;
}

/** The selected symbols without a list of the available ones; undefined if there are globs. */
export function namesOnly(
  patterns: SymbolPatterns,
  quotes: readonly string[],
): readonly string[] | undefined {
  if (patterns.globs.length > 0) return undefined;
  // Without warnings: it is not known whether an exclusion matches a symbol of the archive.
  return selectSymbols(patterns, quotes, patterns.names, { what: 'the named symbols' });
}

/** Whether a glob among the words of a selection selects a symbol, and no exclusion leaves it out. */
export function isOfGlobs(words: readonly string[], symbol: string): boolean {
  const exclusions = words.flatMap((word) => (word.startsWith('!') ? word.slice(1) : []));
  const globs = words.filter((word) => !word.startsWith('!') && !isExactName(word));
  return matcher(globs)(symbol) && !matcher(exclusions)(symbol);
}

const matcher = (globs: readonly string[]): ((symbol: string) => boolean) =>
  globs.length === 0 ? () => false : picomatch([...globs], { nonegate: true, dot: true, nocase: true });

/**
 * Whether --quote selects a symbol; without quotes, any. The quote stands before the underscore or `SETTLED`: `BTCUSDT_240329`, `BTCUSD_PERP`,
 * `ICPUSDT_SETTLED1`, `CVCUSDTSETTLED`.
 */
export function isOfQuotes(symbol: string, quotes: readonly string[]): boolean {
  const pair = (symbol.split('_')[0] ?? '').replace(/SETTLED\d*$/, '');
  return quotes.length === 0 || quotes.some((quote) => pair.endsWith(quote) && pair.length > quote.length);
}

const exampleOf = (available: readonly string[]): string =>
  available.length === 0 ? 'there is no symbol to select' : `for example ${available.slice(0, 3).join(', ')}`;
