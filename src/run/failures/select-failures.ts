/** `cryptodl retry REPORT`: the options of the run of a failure report, and its failures → series requests. */
import { isSupportedPeriod } from '../../lake/line-fields.js';
import { parsePeriod } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import { FLAG_NAMES, flagSpec } from '../../plan/options/flags.js';
import { resolveOptions } from '../../plan/options/resolve.js';
import type { RawValues, ExchangeWords, RawLayer } from '../../plan/options/resolve.js';
import { MOST_SYMBOL_CHARACTERS } from '../../plan/options/symbols.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import type { Settings, Series } from '../../model/task.js';
import { readFailureReport, type ReadReport } from './read-failure-report.js';
import { cadencesOf, restKey } from '../../exchange/keys.js';
import { findDataset, marketNames } from '../../exchange/exchange-spec.js';
import { restOffer } from '../../plan/select/rest-offer.js';
import { givenSettings, type LakeContext, type RunSelection } from '../../plan/select/selection.js';
import { resolve } from 'node:path';
import { lakeOfReport } from '../../lake/layout.js';
import { flagFor, type VerbSpecs } from '../../plan/options/verb-spec.js';
import { withAddresses } from '../../text/mirror-roots.js';

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
    const series = failedSeries(entry);
    const isRest = period !== undefined && entry.key === restKey(series, period);
    if (
      period === undefined ||
      spec === undefined ||
      !isSupportedPeriod(entry.period) ||
      entry.symbol.length > MOST_SYMBOL_CHARACTERS ||
      (!isRest && context.exchange.archive.objectKey(series, period) !== entry.key)
    ) {
      const what = `${entry.market} ${entry.dataset} ${entry.symbol} ${entry.period}`;
      throw usage(`${path} line ${entry.line}: ${entry.key} is not a key of ${what}`, 'remove that line');
    }
    const { settings } = entry;
    const cadences = cadencesOf(spec, entry.interval, settings.cadence);
    const id = JSON.stringify([series, settings, isRest]);
    const rest = isRest ? restOffer(series, { ...context, mode: 'only', includeToday: true }) : undefined;
    const request = requests.get(id) ?? { series, settings, given, cadences, ranges: [], exact: true, rest };
    request.ranges.push({ from: period.from, to: period.to });
    requests.set(id, request);
  }
  for (const request of requests.values()) request.ranges.sort((a, b) => a.from - b.from);
  return [...requests.values()];
}

export function failedSeries({ market, dataset, interval, symbol }: ReadReport['entries'][number]): Series {
  return { market, dataset, ...(interval === undefined ? {} : { interval }), symbol };
}

/** The part of the report's options that a retry uses: neither the selection nor the output of messages. */
function carriedOptions(options: Readonly<Record<string, readonly string[]>>): RawValues {
  const carried = FLAG_NAMES.filter(
    (name) => options[name] !== undefined && flagSpec(name).isCarried === true,
  );
  return Object.fromEntries(carried.map((name) => [name, options[name]]));
}

/**
 * The recorded paths of a report in a lake are those in this lake, which may be a copy or may have been moved since. Rejects with a usage
 * error for a file that is not a report, and for a failure in a market that the exchange does not have.
 */
export async function readReport(operand: string, exchange: ExchangeWords): Promise<ReadReport> {
  const report = await readFailureReport(operand);
  const markets = marketNames(exchange);
  const stray = report.entries.find(({ market }) => !markets.includes(market));
  if (stray === undefined) return inItsLake(report);
  throw usage(
    `${operand} line ${stray.line} is not a failure ("${stray.market}" is not one of the markets ${markets.join(', ')})`,
    'remove that line',
  );
}

function inItsLake(report: ReadReport): ReadReport {
  const { file, header } = report;
  const recorded = header.options['out']?.[0];
  const lake = file === undefined ? undefined : lakeOfReport(resolve(file));
  if (lake === undefined || recorded === undefined) return report;
  const moved = (text: string): string =>
    `${text}/`.startsWith(`${recorded}/`) ? withAddresses(lake) + text.slice(recorded.length) : text;
  const options = Object.entries(header.options).map(([name, texts]) => [name, texts.map(moved)] as const);
  return { ...report, header: { ...header, options: Object.fromEntries(options) } };
}

/** `layers`: the options of this command, its flags first. All layers override the options of the report, but only flags override its paths. */
export function pastRun(
  { path, file, header, entries, cut }: ReadReport,
  layers: readonly RawLayer[],
  { verbs, exchange }: { readonly verbs: VerbSpecs; readonly exchange: ExchangeWords },
) {
  const { options, verb } = header;
  const ofReport: RawLayer = {
    origin: 'failure report',
    values: { ...(verb === 'metrics' ? paceOfMetrics(verbs) : {}), ...carriedOptions(options) },
    nameOf: (name) => `${path}: ${name}`,
  };
  // The environment and the config file may be made for another lake, so the paths of the report override theirs.
  const paths = Object.entries(ofReport.values).filter(([name]) => ['out', 'temp-dir'].includes(name));
  const ofLake = { ...ofReport, values: Object.fromEntries(paths) };
  const ordered = [...layers.slice(0, 1), ofLake, ...layers.slice(1), ofReport];
  const failures: PastFailures = { path, file, entries, cut, options };
  return { verb, resolved: resolveOptions(verbs.retry, ordered, exchange), failures };
}

/** A retry of `metrics` uses the default concurrency and the default retry preset of `metrics`, unless the report has others. */
function paceOfMetrics({ metrics }: VerbSpecs): RawValues {
  const names = ['concurrency', 'retry-preset'] as const;
  return Object.fromEntries(names.map((name) => [name, [flagFor(name, metrics).default ?? '']]));
}
