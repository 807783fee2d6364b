/** The selection of `cryptodl retry REPORT`: the failures of a report → series requests. */
import { isSupportedPeriod } from '../../lake/value-checks.js';
import { parsePeriod } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import { FLAG_NAMES, flagSpec } from '../../plan/options/flags.js';
import type { RawValues } from '../../plan/options/resolve.js';
import { MOST_SYMBOL_CHARACTERS } from '../../plan/options/symbols.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import type { Settings, Series } from '../../model/task.js';
import type { ReadReport } from './read-failure-report.js';
import { cadencesOf, restKey } from '../../exchange/keys.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import { restOffer } from '../../plan/select/rest-offer.js';
import { givenSettings, type LakeContext, type RunSelection } from '../../plan/select/selection.js';

/** The failures that a retry requests again, and the options of their run. */
export interface PastFailures extends Pick<ReadReport, 'path' | 'file' | 'entries' | 'cut'> {
  readonly options: Readonly<Record<string, readonly string[]>>;
}

/**
 * The selection of exactly the failed periods. Throws a usage error for an entry whose key does not fit its series and period,
 * whose period is not supported, or whose symbol is too long.
 */
export function selectFailures(context: LakeContext, failures: PastFailures): RunSelection {
  const { path, entries, cut } = failures;
  if (cut !== undefined)
    context.observer.warn(
      `${path} line ${cut} is cut, so its failure is not known; run the original command again`,
    );
  return {
    verb: 'retry',
    requests: requestsOf(context, failures),
    hasListing: true,
    what: path,
    idle: 'no object is left to retry',
    range: `${entries.length} object${entries.length === 1 ? '' : 's'} of an earlier run`,
    notes: [],
  };
}

/** One request per series, settings and source (archive or REST). */
function requestsOf(context: LakeContext, { path, entries, options }: PastFailures): SelectedSeries[] {
  const requests = new Map<string, SelectedSeries & { ranges: { from: number; to: number }[] }>();
  // The lake may have been written again since then: its own settings count, except for the format and those given with --force.
  const forced = options['force']?.[0] === 'true' ? givenSettings(new Set(Object.keys(options))) : [];
  const given = new Set<keyof Settings>([...forced, 'format']);
  for (const entry of entries) {
    const period = parsePeriod(entry.cadence, entry.period);
    const spec = findDataset(context.exchange, entry.market, entry.dataset);
    const series = seriesOf(entry);
    const rest = period !== undefined && entry.key === restKey(series, period);
    if (
      period === undefined ||
      spec === undefined ||
      !isSupportedPeriod(entry.period) ||
      entry.symbol.length > MOST_SYMBOL_CHARACTERS ||
      (!rest && context.exchange.archive.objectKey(series, period) !== entry.key)
    ) {
      const what = `${entry.market} ${entry.dataset} ${entry.symbol} ${entry.period}`;
      throw usage(`${path} line ${entry.line}: ${entry.key} is not a key of ${what}`, 'remove that line');
    }
    const { settings } = entry;
    const cadences = cadencesOf(spec, entry.interval, settings.cadence);
    const id = JSON.stringify([series, settings, rest]);
    const offer = rest ? restOffer(series, { ...context, mode: 'only', includeToday: true }) : undefined;
    const request = requests.get(id) ?? {
      series,
      settings,
      given,
      cadences,
      ranges: [],
      exact: true,
      rest: offer,
    };
    request.ranges.push({ from: period.from, to: period.to });
    requests.set(id, request);
  }
  for (const request of requests.values()) request.ranges.sort((a, b) => a.from - b.from);
  return [...requests.values()];
}

export function seriesOf({ market, dataset, interval, symbol }: ReadReport['entries'][number]): Series {
  return { market, dataset, ...(interval === undefined ? {} : { interval }), symbol };
}

/** The part of the report's options that a retry uses: neither the selection nor the output of messages. */
export function carriedOptions(options: Readonly<Record<string, readonly string[]>>): RawValues {
  const carried = FLAG_NAMES.filter((name) => flagSpec(name).isCarried === true);
  return Object.fromEntries(
    carried.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
}
