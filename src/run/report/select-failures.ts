/** The selection of `cryptodl retry REPORT`: the failures of a report → series requests. */
import { isSupportedPeriod } from '../../lake/value-checks.js';
import { parsePeriod } from '../../model/calendar.js';
import { usage, toCryptodlError } from '../../model/errors.js';
import { FLAG_NAMES, flagSpec } from '../../plan/options/flags.js';
import type { RawValues } from '../../plan/options/resolve.js';
import { MOST_SYMBOL_CHARACTERS } from '../../plan/options/symbols.js';
import type { SeriesRequest } from '../../plan/series-request.js';
import type { Settings, Format, Period, Series } from '../../model/task.js';
import type { ReadReport } from './failure-report.js';
import { cadencesOf, restKey } from '../../exchange/keys.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import { restOffer } from '../../plan/select/rest-offer.js';
import { givenSettings } from '../../plan/select/selection.js';
import type { LakeContext, RunSelection } from '../../plan/select/selection.js';
import { join } from 'node:path';
import { backingOf, bringIn } from '../../files/backing.js';
import { FOLDERS, lakePaths, refuseLinkedFolders } from '../../lake/layout.js';
import type { LakePaths } from '../../lake/layout.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import { seriesName } from '../../model/task.js';
import { homeOf } from '../../files/environment.js';
import { GIVE_REPORT, newestReport, readFailureReport } from './failure-report.js';
import { absolutePath, shownPath } from '../../text/printable.js';

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
function requestsOf(context: LakeContext, { path, entries, options }: PastFailures): SeriesRequest[] {
  const requests = new Map<string, SeriesRequest & { ranges: { from: number; to: number }[] }>();
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

function seriesOf({ market, dataset, interval, symbol }: ReadReport['entries'][number]): Series {
  return { market, dataset, ...(interval === undefined ? {} : { interval }), symbol };
}

/** The part of the report's options that a retry uses: neither the selection nor the output of messages. */
export function carriedOptions(options: Readonly<Record<string, readonly string[]>>): RawValues {
  const carried = FLAG_NAMES.filter((name) => flagSpec(name).isCarried === true);
  return Object.fromEntries(
    carried.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
}

export interface LastFailures {
  readonly path: string;
  /** The failed periods by the name of their series. */
  readonly bySeries: ReadonlyMap<string, readonly LastFailure[]>;
}

interface LastFailure {
  readonly format: Format;
  readonly period: Period;
  /** The report may be of a later version, with codes that this version does not know. */
  readonly code: ErrorCode;
}

/** Undefined without a report. `warn` is called for a report that cannot be read. */
export async function readLastFailures(
  paths: LakePaths,
  warn: (message: string) => void,
): Promise<LastFailures | undefined> {
  try {
    const path = await lastReport(paths);
    if (path === undefined) return undefined;
    const bySeries = new Map<string, LastFailure[]>();
    for (const entry of (await readFailureReport(path)).entries) {
      const period = parsePeriod(entry.cadence, entry.period);
      if (period === undefined) continue;
      const series = seriesName(seriesOf(entry));
      const failures = bySeries.get(series) ?? [];
      failures.push({ format: entry.settings.format, period, code: entry.code as ErrorCode });
      bySeries.set(series, failures);
    }
    return { path, bySeries };
  } catch (error) {
    warn(`${toCryptodlError(error).message}; the gaps are shown without its failures`);
    return undefined;
  }
}

/** The newest report of a lake as a local file; undefined without one. */
async function lastReport(paths: LakePaths): Promise<string | undefined> {
  await refuseLinkedFolders(paths);
  const folder = await paths.folder(FOLDERS.failures);
  await backingOf(folder)?.openFolders([folder]);
  const name = await newestReport(folder);
  if (name === undefined) return undefined;
  const path = join(folder, name);
  await bringIn(path);
  return path;
}

/** The same for `cryptodl retry` without a file. Rejects with a usage error for a lake without a report. */
export async function lastReportOf(out: string, environment: Io['environment']): Promise<string> {
  const paths = lakePaths(absolutePath(out, homeOf(environment)));
  const path = await lastReport(paths);
  if (path === undefined) throw usage(`${shownPath(paths.failures)} has no failure report`, GIVE_REPORT);
  return path;
}
