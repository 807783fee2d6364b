/** What `vision` and `retry` do alike before they run: plan, print, refuse, remember the options. */
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { DAY_MS } from '../calendar.js';
import { errnoOf, usage } from '../errors.js';
import type { Io } from '../io.js';
import type { RawValues } from '../options/resolve.js';
import type { Listing } from '../plan/listing.js';
import { makePlan } from '../plan/plan.js';
import type { Plan } from '../plan/plan.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import type { ReportHeader } from '../report/failure-report.js';
import type { Session } from '../session.js';
import { bytesText } from '../units.js';
import { TOOL_VERSION } from '../version.js';

/** `listing` is undefined when it is known that it cannot be had. */
export function planRun(
  session: Session,
  requests: readonly SeriesRequest[],
  listing: Listing | undefined,
): Promise<Plan> {
  const { venue, paths, reporter, options } = session;
  return makePlan(
    {
      venue,
      root: paths.root,
      today: Math.floor(session.nowMs / DAY_MS),
      force: options.force === true,
      listing,
      probe: session.probe,
      spoolPath: join(session.runFolder, 'plan.jsonl'),
      warn: (message) => {
        reporter.warn(message);
      },
    },
    requests,
  );
}

/** `fetch|skip|absent`, bytes and key per object on stdout; closes the plan. */
export async function printPlan(session: Session, io: Io, plan: Plan): Promise<void> {
  for await (const partition of plan.spool.plans()) {
    const lines = partition.tasks.map(
      ({ action, object }) => `${action.kind}\t${object.bytes ?? 0}\t${object.key}\n`,
    );
    if (!io.stdout.write(lines.join(''))) await drained(io);
    // A reader that has seen enough.
    if (!io.stdout.writable) break;
  }
  await plan.spool.close();
  refuseLargePlan(session, plan);
}

/** Also when the reader goes away: nothing is drained then. */
async function drained(io: Io): Promise<void> {
  try {
    await once(io.stdout, 'drain');
  } catch (error) {
    if (errnoOf(error) !== 'EPIPE') throw error;
  }
}

/** Throws the usage error of --max-bytes. */
export function refuseLargePlan(session: Session, plan: Pick<Plan, 'totals'>): void {
  const limit = session.options['max-bytes'];
  if (limit === undefined || plan.totals.fetchBytes <= limit) return;
  throw usage(
    `the plan is ${bytesText(plan.totals.fetchBytes)}, more than --max-bytes ${bytesText(limit)}`,
    'choose fewer symbols or days, or a larger --max-bytes',
  );
}

export function reportHeader(
  run: { readonly session: Session; readonly texts: RawValues },
  verb: string,
): Omit<ReportHeader, 'v' | 'kind'> {
  const options = Object.fromEntries(Object.entries(run.texts).map(([name, texts]) => [name, [...texts]]));
  // Places, whatever the next working directory is.
  options['out'] = [run.session.paths.root];
  if (options['temp-dir'] !== undefined) options['temp-dir'] = [dirname(run.session.runFolder)];
  return { verb, tool: TOOL_VERSION, at: new Date(run.session.clock.now()).toISOString(), options };
}
