/** `cryptodl vision`: what is wanted, what there is, and then the run. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { errnoOf, usage } from '../errors.js';
import { executePlan } from '../execute-plan.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { openLake } from '../open-lake.js';
import type { RawValues } from '../options/resolve.js';
import { makePlan } from '../plan/plan.js';
import type { Plan } from '../plan/plan.js';
import { createFailureReport } from '../report/failure-report.js';
import type { Session } from '../session.js';
import type { PlanTotals } from '../task.js';
import type { ReadList } from '../plan/symbols.js';
import { bytesText } from '../units.js';
import { TOOL_VERSION } from '../version.js';
import { chooseSeries } from './choose-series.js';
import type { Wanted } from './wanted.js';

export interface VisionRun {
  readonly session: Session;
  readonly io: Io;
  /** As typed, for the failure report. */
  readonly texts: RawValues;
  /** Options that somebody gave, in whatever way. */
  readonly given: ReadonlySet<string>;
}

export async function vision(run: VisionRun): Promise<ExitCode> {
  const { session } = run;
  const wanted = await chooseSeries(session, readLists(run.io), run.given);
  if (session.options['dry-run'] === true) {
    const plan = await planOf(session, wanted);
    return dryRun(run, wanted, plan);
  }
  const lock = await openLake(session, 'cryptodl vision');
  try {
    const plan = await planOf(session, wanted);
    try {
      refuseLargePlan(session, plan);
      session.reporter.say(planLines(session, wanted, plan));
      session.reporter.event('plan', { ...plan.totals, range: wanted.rangeText });
      return await executePlan(session, {
        plans: plan.spool.plans(),
        totals: plan.totals,
        report: createFailureReport({
          path: reportPath(session),
          header: reportHeader(run, 'vision'),
          mode: session.options.failures === undefined ? 'new' : 'overwrite',
        }),
        dataPath: wanted.dataPath,
        next: wanted.query,
      });
    } finally {
      await plan.spool.close();
    }
  } finally {
    await lock.release();
  }
}

function readLists(io: Io): ReadList {
  return async (source) => {
    if (source === 'stdin') return readAll(io.stdin);
    try {
      return await readFile(source.file, 'utf8');
    } catch (error) {
      throw usage(
        `--symbols: cannot read ${source.file} (${errnoOf(error)})`,
        'write @FILE for a list of symbols in a file',
      );
    }
  };
}

function planOf(session: Session, wanted: Wanted): Promise<Plan> {
  const { venue, paths, reporter, options } = session;
  return makePlan(
    {
      venue,
      root: paths.root,
      today: Math.floor(session.nowMs / 86_400_000),
      force: options.force === true,
      listing: wanted.hasListing ? session.listing : undefined,
      probe: session.probe,
      spoolPath: join(session.runFolder, 'plan.jsonl'),
      warn: (message) => {
        reporter.warn(message);
      },
      onProgress: () => undefined,
    },
    wanted.requests,
  );
}

/** Throws the usage error of --max-bytes. */
function refuseLargePlan(session: Session, plan: Pick<Plan, 'totals'>): void {
  const limit = session.options['max-bytes'];
  if (limit === undefined || plan.totals.fetchBytes <= limit) return;
  throw usage(
    `the plan is ${bytesText(plan.totals.fetchBytes)}, more than --max-bytes ${bytesText(limit)}`,
    'choose fewer symbols or days, or a larger --max-bytes',
  );
}

/** `data/failures/vision-20261121T070000Z.jsonl` */
function reportPath(session: Session): string {
  const stamp = new Date(session.clock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return session.options.failures ?? join(session.paths.failures, `vision-${stamp}.jsonl`);
}

export function reportHeader(
  run: Pick<VisionRun, 'session' | 'texts'>,
  verb: string,
): Parameters<typeof createFailureReport>[0]['header'] {
  const options = Object.fromEntries(Object.entries(run.texts).map(([name, texts]) => [name, [...texts]]));
  // The lake's place whatever the next working directory is.
  options['out'] = [resolve(run.session.paths.root)];
  return { verb, tool: TOOL_VERSION, at: new Date(run.session.clock.now()).toISOString(), options };
}

function count(number: number, what: string): string {
  return `${number.toLocaleString('en-US')} ${what}${number === 1 ? '' : 's'}`;
}

function toFetch(session: Session, totals: PlanTotals): string {
  if (totals.fetch === 0) return '  to fetch   nothing';
  const { options, paths } = session;
  const size = `${count(totals.fetch, 'object')}, ${bytesText(totals.fetchBytes)}`;
  return `  to fetch   ${size}, into ${count(totals.partitions, 'partition')} of ${options.format} in ${paths.root}`;
}

function planLines(session: Session, wanted: Wanted, plan: Plan): string[] {
  const { totals } = plan;
  const absent = Object.entries(totals.absentBy).map(
    ([reason, number]) => `${number.toLocaleString('en-US')} ${reason}`,
  );
  return [
    `${wanted.what}: ${totals.series.toLocaleString('en-US')} series, ${wanted.rangeText}`,
    ...wanted.notes.map((note) => `  ${note}`),
    toFetch(session, totals),
    ...(totals.skip > 0 ? [`  held       ${count(totals.skip, 'object')}, unchanged`] : []),
    ...(totals.absent > 0 ? [`  absent     ${absent.join(', ')}`] : []),
  ];
}

async function dryRun(run: VisionRun, wanted: Wanted, plan: Plan): Promise<ExitCode> {
  const { session, io } = run;
  for await (const partition of plan.spool.plans()) {
    const lines = partition.tasks.map(
      ({ action, object }) => `${action.kind}\t${object.bytes ?? 0}\t${object.key}\n`,
    );
    if (!io.stdout.write(lines.join(''))) await once(io.stdout, 'drain');
  }
  await plan.spool.close();
  session.reporter.say(planLines(session, wanted, plan));
  refuseLargePlan(session, plan);
  return 0;
}
