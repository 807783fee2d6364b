/** The series that the script for nautilus_trader can load: instruments with a known pair, and bars of its units. */
import { listText } from '../model/units.js';
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { isSettled, pairOf } from '../source/pairs.js';
import type { Source } from '../source/source.js';
import { intervalMs } from '../source/venue.js';

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

/** Throws one usage error for all series that the script cannot load. */
export function refuseOthers(selected: readonly Series[], request: VerbRequest): void {
  const reasons = new Map<string, string>();
  for (const series of selected) {
    const reason = noInstrument(series, request.source);
    if (reason !== undefined) reasons.set(series.symbol, reason);
  }
  const long = selected.find((series) => !reasons.has(series.symbol) && hasNoStep(series));
  if (reasons.size === 0 && long === undefined) return;
  if (reasons.size > 0)
    throw usage(
      `nautilus-loader makes instruments of spot pairs and perpetual contracts only, not of ${listText(
        [...reasons].map(([symbol, reason]) => `${symbol} (${reason})`),
        3,
      )}`,
      'leave them out with --symbols',
    );
  throw usage(
    `nautilus-loader has no bar type for ${long === undefined ? '' : seriesName(long)}`,
    'choose others with --interval',
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
