/** Which of the held series `verify` and `repair` look at. */
import { usage } from '../errors.js';
import { hasQuote, readPatterns, selectSymbols } from '../plan/symbols.js';
import type { ReadList } from '../plan/symbols.js';
import type { Format, Series } from '../task.js';
import { walkLake } from '../verify/walk-lake.js';
import type { Session } from './session.js';

export interface HeldSelection {
  /** Nothing was said: the whole lake, also what is in no series. */
  readonly isWhole: boolean;
  readonly has: (series: Series) => boolean;
  readonly format: Format | undefined;
}

/** Explicit flags choose. Throws usage errors for symbols that the lake does not hold. */
export async function chooseHeld(
  session: Session,
  given: ReadonlySet<string>,
  read: ReadList,
): Promise<HeldSelection> {
  const { options } = session;
  const chosen = ['market', 'dataset', 'interval', 'symbols', 'quote', 'format'] as const;
  const isOf = (series: Series): boolean =>
    (!given.has('market') || series.market === options.market) &&
    (!given.has('dataset') || options.dataset.includes(series.dataset)) &&
    (!given.has('interval') || series.interval === undefined || options.interval.includes(series.interval)) &&
    (options.quote === undefined || options.quote.some((quote) => hasQuote(series.symbol, quote)));
  const symbols =
    options.symbols === undefined ? undefined : await symbolsOf(session, options.symbols, isOf, read);
  return {
    isWhole: !chosen.some((name) => given.has(name)),
    has: (series) => isOf(series) && (symbols === undefined || symbols.has(series.symbol)),
    format: given.has('format') ? options.format : undefined,
  };
}

async function symbolsOf(
  { paths, venue, options }: Session,
  values: readonly string[],
  isOf: (series: Series) => boolean,
  read: ReadList,
): Promise<Set<string>> {
  const patterns = await readPatterns(values, read);
  const available = new Set<string>();
  for await (const found of walkLake(paths.root, venue.name))
    if (found.kind === 'series' && isOf(found.series)) available.add(found.series.symbol);
  if (available.size === 0) throw nothingHeld(options.out, true);
  return new Set(selectSymbols(patterns, [], [...available], 'its series', 'the lake').symbols);
}

export function nothingHeld(out: string, hasFlags: boolean): Error {
  if (!hasFlags)
    return usage(`${out} holds no series`, 'name the lake with --out, or download something into it', {
      command: ['vision', '--symbols', 'BTCUSDT', '--days', '7'],
    });
  return usage(`${out} holds no series that fits the given flags`, 'leave some of them out', {
    flags: { market: null, dataset: null, interval: null, symbols: null, quote: null, format: null },
  });
}
