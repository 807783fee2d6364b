/** `--market`, `--dataset`, `--interval`, `--symbols` and `--quote` over what a lake holds. */
import { didYouMean, nearest } from '../did-you-mean.js';
import { usage } from '../errors.js';
import type { FlagName } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { selectSymbols } from '../plan/symbols.js';
import type { SymbolPatterns } from '../plan/symbols.js';
import type { Series } from '../task.js';
import { isAll } from './choose-datasets.js';

/** Only what is given chooses; throws usage errors for what the lake does not hold. `patterns`: of --symbols. */
export function narrowHeld(
  held: readonly Series[],
  { options, origins }: Pick<Resolved, 'options' | 'origins'>,
  patterns: SymbolPatterns | undefined,
): Series[] {
  if (held.length === 0) throw nothingHeld(options.out);
  const isGiven = (name: FlagName): boolean => origins[name] !== 'default';
  let chosen = held;
  const narrow = (name: FlagName, values: readonly string[], of: (series: Series) => string | undefined) => {
    if (!isGiven(name) || isAll(values)) return;
    refuseUnknown(name, values, chosen, of, options.out);
    chosen = chosen.filter((series) => {
      const value = of(series);
      // Datasets without intervals are not chosen by them.
      return value === undefined || values.includes(value);
    });
  };
  narrow('market', options.market, ({ market }) => market);
  narrow('dataset', options.dataset, ({ dataset }) => dataset);
  narrow('interval', options.interval, ({ interval }) => interval);
  const quotes = options.quote ?? [];
  const available = [...new Set(chosen.map(({ symbol }) => symbol))];
  const every = { names: [], globs: ['*'], exclusions: [] };
  const { symbols } = selectSymbols(patterns ?? every, quotes, available, whatOf(chosen), options.out);
  const wanted = new Set(symbols);
  return chosen.filter(({ symbol }) => wanted.has(symbol));
}

export function nothingHeld(out: string): Error {
  return usage(`${out} holds no series`, 'name the lake with --out, or download something into it', {
    command: ['vision', '--symbols', 'BTCUSDT', '--days', '7'],
  });
}

function refuseUnknown(
  name: FlagName,
  values: readonly string[],
  held: readonly Series[],
  of: (series: Series) => string | undefined,
  out: string,
): void {
  const known = [...new Set(held.flatMap((series) => of(series) ?? []))].sort();
  const unknown = values.find((value) => !known.includes(value));
  if (unknown === undefined || (known.length === 0 && held.length > 0)) return;
  const near = nearest(unknown, known) ?? known[0];
  throw usage(
    `--${name}: ${out} holds no ${unknown}; it holds ${known.join(', ')}`,
    didYouMean(unknown, known),
    { flags: { [name]: near ?? null } },
  );
}

function whatOf(series: readonly Series[]): string {
  const names = new Set(
    series.map(({ market, dataset, interval }) => [market, dataset, interval].filter(Boolean).join(' ')),
  );
  return [...names].slice(0, 3).join(', ') + (names.size > 3 ? ' …' : '');
}
