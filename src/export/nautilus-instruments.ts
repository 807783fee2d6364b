/** The series that the script for nautilus_trader can load: instruments with a known pair, and bars of its units. */
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { MOST_SHOWN } from '../options/symbols.js';
import type { VerbRequest } from '../options/verb-request.js';
import { isSettled, pairOf } from '../source/pairs.js';
import type { Source } from '../source/source.js';
import { intervalMs } from '../source/venue.js';
import { hasNamed } from './script.js';

/** Steps and units of bar types, by length. Longer bars have no fixed unit there. */
const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'DAY'],
  [3_600_000, 'HOUR'],
  [60_000, 'MINUTE'],
  [1000, 'SECOND'],
];

/** `5-MINUTE`; undefined for longer units. */
export function barStep(interval: string): string | undefined {
  const ms = intervalMs(interval);
  const [length, unit] = UNITS.find(([size]) => ms % size === 0) ?? [];
  return length === undefined || unit === undefined ? undefined : `${ms / length}-${unit}`;
}

/** Throws one usage error for all series that the script cannot load. Its correction leaves all of them out. */
export function refuseOthers(selected: readonly Series[], request: VerbRequest): void {
  const reasons = new Map<string, string>();
  for (const series of selected) {
    const reason = noInstrument(series, request.source);
    if (reason !== undefined) reasons.set(series.symbol, reason);
  }
  const others = selected.filter(({ symbol }) => !reasons.has(symbol));
  const unstepped = others.filter(hasNoStep);
  const [long] = unstepped;
  if (reasons.size === 0 && long === undefined) return;
  const flags = flagsFor(others, reasons, request);
  const correction = flags === undefined ? undefined : { flags };
  if (reasons.size > 0)
    throw usage(
      `nautilus-loader makes instruments of spot pairs and perpetual contracts only, not of ${firstOf(reasons)}`,
      flags === undefined ? 'leave them out with --symbols' : undefined,
      correction,
    );
  throw usage(
    `nautilus-loader has no bar type for ${long === undefined ? '' : seriesName(long)}`,
    flags === undefined ? 'choose others with --interval' : undefined,
    correction,
  );
}

function noInstrument({ market, symbol }: Series, source: Source): string | undefined {
  const pair = pairOf(source, market, symbol);
  if (pair === undefined) return isSettled(symbol) ? 'settled' : 'assets not known';
  return pair.expiry === undefined ? undefined : 'ends';
}

function hasNoStep({ interval }: Series): boolean {
  return interval !== undefined && barStep(interval) === undefined;
}

const MOST_NAMED = 3;

/** `CVCUSDTSETTLED (settled), BTCUSDT_240329 (ends)` */
function firstOf(reasons: ReadonlyMap<string, string>): string {
  const named = [...reasons].slice(0, MOST_NAMED).map(([symbol, reason]) => `${symbol} (${reason})`);
  return named.join(', ') + (reasons.size > MOST_NAMED ? ` and ${reasons.size - MOST_NAMED} more` : '');
}

/** The flags that select only series that the script can load. `others`: the series with an instrument. Undefined if no short value does. */
function flagsFor(
  others: readonly Series[],
  reasons: ReadonlyMap<string, string>,
  request: VerbRequest,
): Record<string, string> | undefined {
  const { options, origins } = request.resolved;
  const loaded = others.filter((series) => !hasNoStep(series));
  if (loaded.length === 0) return undefined;
  const flags: Record<string, string> = {};
  if (loaded.length < others.length) {
    // --interval without --dataset leaves out datasets without intervals.
    const isCut = origins.dataset === 'default' && loaded.some(({ interval }) => interval === undefined);
    const symbols = new Set(others.map(({ symbol }) => symbol));
    if (isCut || !hasNamed(loaded, symbols, request)) return undefined;
    flags['interval'] = [...new Set(loaded.flatMap(({ interval }) => interval ?? []))].join(',');
  }
  if (reasons.size === 0) return flags;
  const { text, globs, lists } = options.symbols ?? { text: '*', globs: ['*'], lists: [] };
  const words = text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => !reasons.has(word));
  const isOpen = globs.length > 0 || lists.length > 0;
  const all = [...words, ...(isOpen ? exclusionsOf(reasons, loaded) : [])];
  if (all.length > MOST_SHOWN) return undefined;
  return { ...flags, symbols: all.join(',') };
}

/** Globs for names of settled contracts, and of contracts that end. */
const GLOBS = [
  { glob: '*SETTLED*', pattern: /SETTLED/ },
  { glob: '*_??????', pattern: /_.{6}$/ },
];

/** `!BTCUSDT_240329`; for more than a few names of one form, their glob, if it leaves out no other series. */
function exclusionsOf(reasons: ReadonlyMap<string, string>, loaded: readonly Series[]): string[] {
  let names = [...reasons.keys()];
  const found: string[] = [];
  for (const { glob, pattern } of GLOBS) {
    const own = names.filter((name) => pattern.test(name));
    if (own.length <= MOST_NAMED || loaded.some(({ symbol }) => pattern.test(symbol))) continue;
    found.push(glob);
    names = names.filter((name) => !own.includes(name));
  }
  return [...found, ...names].map((pattern) => `!${pattern}`);
}
