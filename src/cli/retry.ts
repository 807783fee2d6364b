/** `cryptodl retry FILE`: the periods that a failure report lists, planned and run once more. */
import { parsePeriod } from '../calendar.js';
import { usage } from '../errors.js';
import { executePlan } from '../execute-plan.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { openLake } from '../open-lake.js';
import type { FlagName } from '../options/flags.js';
import type { RawValues } from '../options/resolve.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import { createFailureReport } from '../report/failure-report.js';
import type { ReportEntry } from '../report/failure-report.js';
import type { Session } from '../session.js';
import { shownPath } from '../shown-path.js';
import { cadencesOf, objectKey } from '../venue/keys.js';
import { findDataset } from '../venue/venue.js';
import { planRun, printPlan, refuseLargePlan, reportHeader } from './plan-run.js';

export interface RetryRun {
  readonly session: Session;
  readonly io: Io;
  readonly texts: RawValues;
  readonly path: string;
  readonly entries: readonly ReportEntry[];
}

export async function retryReport(run: RetryRun): Promise<ExitCode> {
  const { session, path } = run;
  const requests = requestsOf(session, path, run.entries);
  if (session.options['dry-run'] === true) {
    await printPlan(session, run.io, await planRun(session, requests, session.listing));
    return 0;
  }
  const lock = await openLake(session, 'cryptodl retry');
  try {
    const plan = await planRun(session, requests, session.listing);
    const { totals } = plan;
    refuseLargePlan(session, plan);
    session.reporter.say([
      `${path}: ${totals.fetch} object${totals.fetch === 1 ? '' : 's'} to fetch again, ${totals.skip} held by now`,
    ]);
    session.reporter.event('plan', totals);
    try {
      return await executePlan(session, {
        plans: plan.spool.plans(),
        totals,
        report: createFailureReport({
          path: session.options.failures ?? path,
          header: reportHeader(run, 'retry'),
          mode: 'replace',
        }),
        dataPath: shownPath(session.paths.root),
        next: undefined,
      });
    } finally {
      await plan.spool.close();
    }
  } finally {
    await lock.release();
  }
}

/** One request per series and settings. Throws usage errors for entries that no archive key fits. */
function requestsOf(session: Session, path: string, entries: readonly ReportEntry[]): SeriesRequest[] {
  const requests = new Map<string, SeriesRequest & { ranges: { from: number; to: number }[] }>();
  for (const [index, entry] of entries.entries()) {
    const period = parsePeriod(entry.cadence, entry.period);
    const spec = findDataset(session.venue, entry.market, entry.dataset);
    const interval = entry.interval === undefined ? {} : { interval: entry.interval };
    const series = { market: entry.market, dataset: entry.dataset, ...interval, symbol: entry.symbol };
    if (
      period === undefined ||
      spec === undefined ||
      objectKey(session.venue, series, period) !== entry.key
    ) {
      const what = `${entry.market} ${entry.dataset} ${entry.symbol} ${entry.period}`;
      throw usage(
        `${path} line ${index + 2}: ${entry.key} is not the archive's key of ${what}`,
        'remove that line',
      );
    }
    const { settings } = entry;
    const cadences = cadencesOf(spec, entry.interval, settings.cadence);
    const id = JSON.stringify([series, settings]);
    const request = requests.get(id) ?? { series, settings, cadences, ranges: [] };
    request.ranges.push({ from: period.from, to: period.to });
    requests.set(id, request);
  }
  for (const request of requests.values()) request.ranges.sort((a, b) => a.from - b.from);
  return [...requests.values()];
}

/** Of one run's options those that the next try of it keeps: where the lake is and how it is verified, not what was chosen. */
const CARRIED: readonly FlagName[] = [
  'out',
  'format',
  'verify',
  'archive-url',
  'listing-url',
  'temp-dir',
  'force',
];

export function carriedOptions(options: Readonly<Record<string, readonly string[]>>): RawValues {
  return Object.fromEntries(
    CARRIED.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
}
