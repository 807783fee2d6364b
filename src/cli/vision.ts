/** `cryptodl vision`: what is wanted, what there is, and then the run. */
import { constants } from 'node:fs';
import { access, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { errnoOf, usage } from '../errors.js';
import { executePlan } from '../execute-plan.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { fileSize } from '../lake/publish.js';
import { openLake } from '../open-lake.js';
import type { RawValues } from '../options/resolve.js';
import type { Plan } from '../plan/plan.js';
import { createFailureReport } from '../report/failure-report.js';
import type { Session } from '../session.js';
import type { PlanTotals } from '../task.js';
import type { ReadList } from '../plan/symbols.js';
import { shownPath } from '../shown-path.js';
import { bytesText } from '../units.js';
import { chooseSeries } from './choose-series.js';
import { planRun, printPlan, refuseLargePlan, reportHeader } from './plan-run.js';
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
  const listing = wanted.hasListing ? session.listing : undefined;
  if (session.options['dry-run'] === true) {
    const plan = await planRun(session, wanted.requests, listing);
    session.reporter.say(planLines(session, wanted, plan));
    await printPlan(session, run.io, plan);
    return 0;
  }
  await refuseBadReport(session.options.failures);
  const lock = await openLake(session, 'cryptodl vision');
  try {
    const plan = await planRun(session, wanted.requests, listing);
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
        dataPath: shownPath(wanted.dataPath),
        next: wanted.query,
      });
    } finally {
      await plan.spool.close();
    }
  } finally {
    await lock.release();
  }
}

/** Found out before the first byte, not with the first failure. Throws a usage error. */
async function refuseBadReport(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  try {
    await mkdir(dirname(path), { recursive: true });
    await access((await fileSize(path)) === undefined ? dirname(path) : path, constants.W_OK);
  } catch (error) {
    throw usage(
      `--failures ${path} cannot be written (${errnoOf(error)})`,
      'choose another --failures, or leave it out',
    );
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

/** `data/failures/vision-20261121T070000Z.jsonl` */
function reportPath(session: Session): string {
  const stamp = new Date(session.clock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return session.options.failures ?? join(session.paths.failures, `vision-${stamp}.jsonl`);
}

function count(number: number, what: string): string {
  return `${number.toLocaleString('en-US')} ${what}${number === 1 ? '' : 's'}`;
}

function toFetch(session: Session, totals: PlanTotals): string {
  if (totals.fetch === 0) return '  to fetch   nothing';
  const { options, paths } = session;
  const size = `${count(totals.fetch, 'object')}, ${bytesText(totals.fetchBytes)}`;
  return `  to fetch   ${size}, into ${count(totals.partitions, 'partition')} of ${options.format} in ${shownPath(paths.root)}`;
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
