/** `cryptodl retry FILE`: what a failure report lists, once more. */
import { join } from 'node:path';
import { monthOf, monthText, parsePeriod, periodText } from '../calendar.js';
import { usage } from '../errors.js';
import { executePlan } from '../execute-plan.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { seriesFolder } from '../lake/layout.js';
import { openLake } from '../open-lake.js';
import { readManifest } from '../lake/manifest.js';
import { fileSize } from '../lake/publish.js';
import type { FlagName } from '../options/flags.js';
import type { RawValues } from '../options/resolve.js';
import { createFailureReport } from '../report/failure-report.js';
import type { ReportEntry } from '../report/failure-report.js';
import type { Session } from '../session.js';
import type { ArchiveObject, PartitionPlan, PlanTotals, Task } from '../task.js';
import { objectKey } from '../venue/keys.js';
import { findDataset } from '../venue/venue.js';
import { reportHeader } from './vision.js';

export interface RetryRun {
  readonly session: Session;
  readonly io: Io;
  readonly texts: RawValues;
  readonly path: string;
  readonly entries: readonly ReportEntry[];
}

export async function retryReport(run: RetryRun): Promise<ExitCode> {
  const { session, path } = run;
  const plans = await plansOf(session, path, run.entries);
  const totals = totalsOf(plans);
  if (session.options['dry-run'] === true) {
    const lines = plans.flatMap((plan) =>
      plan.tasks.map(({ action, object }) => `${action.kind}\t${object.bytes ?? 0}\t${object.key}\n`),
    );
    run.io.stdout.write(lines.join(''));
    return 0;
  }
  const lock = await openLake(session, 'cryptodl retry');
  try {
    session.reporter.say([
      `${path}: ${totals.fetch} object${totals.fetch === 1 ? '' : 's'} to fetch again, ${totals.skip} held by now`,
    ]);
    session.reporter.event('plan', totals);
    const reportPath = session.options.failures ?? path;
    return await executePlan(session, {
      plans: each(plans),
      totals,
      report: createFailureReport({ path: reportPath, header: reportHeader(run, 'retry'), mode: 'replace' }),
      dataPath: session.paths.root,
      next: undefined,
    });
  } finally {
    await lock.release();
  }
}

// oxlint-disable-next-line require-await
async function* each(plans: readonly PartitionPlan[]): AsyncGenerator<PartitionPlan> {
  yield* plans;
}

/** One plan per partition that the entries touch. Throws usage errors for entries that no archive key fits. */
async function plansOf(
  session: Session,
  path: string,
  entries: readonly ReportEntry[],
): Promise<PartitionPlan[]> {
  const plans = new Map<string, PartitionPlan & { tasks: Task[] }>();
  const seen = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    const { plan, object } = planOfEntry(session, entry, `${path} line ${index + 2}`);
    const id = JSON.stringify([plan.series, plan.settings, plan.label]);
    if (seen.has(`${id} ${object.key}`)) continue;
    seen.add(`${id} ${object.key}`);
    const known = plans.get(id) ?? { ...plan, tasks: [] };
    plans.set(id, known);
    const isHeld = await holds(session, plan, object);
    known.tasks.push({ series: plan.series, object, action: { kind: isHeld ? 'skip' : 'fetch' } });
  }
  for (const plan of plans.values()) plan.tasks.sort((a, b) => a.object.period.from - b.object.period.from);
  return [...plans.values()];
}

function planOfEntry(
  session: Session,
  entry: ReportEntry,
  where: string,
): { plan: PartitionPlan; object: ArchiveObject } {
  const period = parsePeriod(entry.cadence, entry.period);
  const interval = entry.interval === undefined ? {} : { interval: entry.interval };
  const series = { market: entry.market, dataset: entry.dataset, ...interval, symbol: entry.symbol };
  if (
    period === undefined ||
    findDataset(session.venue, entry.market, entry.dataset) === undefined ||
    objectKey(session.venue, series, period) !== entry.key
  ) {
    throw usage(
      `${where}: ${entry.key} is not the archive's key of ${entry.market} ${entry.dataset} ${entry.symbol} ${entry.period}`,
      'remove that line',
    );
  }
  const byDay = entry.settings.partition === 'day' && entry.settings.format !== 'zip';
  const label = byDay ? periodText(period) : monthText(monthOf(period.from));
  return {
    plan: {
      series,
      settings: entry.settings,
      label,
      tasks: [],
      ...(session.options.force === true ? { force: true } : {}),
    },
    object: { key: entry.key, period },
  };
}

/** Another run may have brought it meanwhile. A refused revision of a held object waits for the next run, which asks the listing. */
async function holds(session: Session, plan: PartitionPlan, object: ArchiveObject): Promise<boolean> {
  const folder = join(session.paths.root, seriesFolder(session.venue.name, plan.series));
  const held = (await readManifest(folder))[plan.settings.format];
  const line = held.lines().find((candidate) => candidate.key === object.key);
  if (line === undefined) return false;
  const root = plan.settings.format === 'zip' ? session.paths.root : folder;
  const size = await fileSize(join(root, line.file));
  // The listing knows whether upstream changed; a retry does not ask it for objects that are whole.
  return size === held.lastOfFile(line.file)?.fileBytes;
}

function totalsOf(plans: readonly PartitionPlan[]): PlanTotals {
  const count = (kind: 'fetch' | 'skip'): number =>
    plans.reduce((sum, plan) => sum + plan.tasks.filter((task) => task.action.kind === kind).length, 0);
  return {
    series: new Set(plans.map((plan) => JSON.stringify(plan.series))).size,
    partitions: plans.length,
    fetch: count('fetch'),
    skip: count('skip'),
    absent: 0,
    fetchBytes: 0,
    largestBytes: 0,
    absentBy: {},
  };
}

/** Of one run's options those that the next try of it keeps: where the lake is and how it is verified, not what was chosen. */
const CARRIED: readonly FlagName[] = [
  'out',
  'format',
  'verify',
  'archive-url',
  'listing-url',
  'temp-dir',
  'as-published',
  'numbers',
  'timestamps',
  'force',
];

export function carriedOptions(options: Readonly<Record<string, readonly string[]>>): RawValues {
  return Object.fromEntries(
    CARRIED.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
}
