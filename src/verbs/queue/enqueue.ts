/** `cryptodl enqueue vision|metrics`: the selected series of a download as jobs of a queue. */
import { withSignals } from '../../run/verb/start-verb.js';
import type { Command } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { openSession } from '../../run/session/session.js';
import { dayOf } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { countText, numberText } from '../../model/units.js';
import { choice } from '../../plan/options/parsers.js';
import { resolveOptions } from '../../plan/options/resolve.js';
import type { RunFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { shownRedis } from '../../http/redis/redis-errors.js';
import { askedOrders } from '../../plan/select/continue-orders.js';
import { selectSeries } from '../../plan/select/select-series.js';
import { ofShard, type RunSelection } from '../../plan/select/selection.js';
import { printLines } from '../../text/printable.js';
import { addJobs } from './add-jobs.js';
import { loadBullMq } from './bullmq.js';
import { JOB_VERBS, jobOptions, namedLake, type JobData, type JobVerb } from './job-data.js';
import { redisAddress, withQueue, type CommandQueue } from './open-queue.js';
import { waitForJobs, type WaitFlag } from './wait-for-jobs.js';
import { Wait } from './wait.js';
import { splitSeries, type SplitOptions } from './split-series.js';

type EnqueueCommand = Command<WaitFlag | 'dry-run' | 'max-waiting' | 'priority' | 'queue' | 'redis' | 'wait'>;

/** Resolves with 0 after the last job was added; with --wait, with the exit code of the download. */
export async function enqueue(command: EnqueueCommand): Promise<ExitCode> {
  const { exchange, resolved, layers, verbs, io } = command;
  const verb = choice(JOB_VERBS)(command.operand ?? '', 'enqueue');
  const { options } = resolved;
  redisAddress(options, 'enqueue');
  const ofVerb = resolveOptions(verbs[verb], layers, exchange);
  if (ofVerb.options.symbols === undefined)
    throw usage('enqueue needs the symbols of the jobs', '--symbols all, or a list like BTCUSDT,ETHUSDT');
  // Before the listings, which may take long.
  if (!options.dryRun) await loadBullMq();
  return withSignals({ exchange, resolved: ofVerb, io }, async (request) => {
    const { requests, notes, today, orders } = await selectRequests(verb, request);
    if (!options.quiet && !options.json)
      printLines(
        io.stderr,
        notes.map((line) => `  ${line}`),
      );
    if (requests.length === 0) throw usage('no series is selected', 'cryptodl list symbols shows the names');
    const out = namedLake(options.out, request.surroundings.home);
    const shared = { ...jobOptions(ofVerb.texts), out: [out] };
    const jobs = splitSeries(requests, { verb, exchange, today, shared, orders });
    const series = requests.length;
    if (!options.dryRun)
      return withQueue(options, 'enqueue', io, (queue) => addAll(jobs, series, command, queue));
    let count = 0;
    for (const _ of jobs) count += 1;
    await writeData(io, [
      options.json
        ? { event: 'planned', series, jobs: count }
        : `${countText(count, 'job')} for ${countText(series, 'series')}`,
    ]);
    return 0;
  });
}

/** Sends the requests of the selection: listings of symbols, but nothing for a single series. Rejects with their errors, and with usage errors. */
async function selectRequests(
  verb: JobVerb,
  request: VerbRequest<RunFlag>,
): Promise<Pick<RunSelection, 'requests' | 'notes'> & Pick<SplitOptions, 'today' | 'orders'>> {
  const session = openSession(request);
  try {
    await session.refuseBanned(verb);
    const selection = ofShard(session, await selectSeries(session, request.resolved, request.read, verb));
    const orders = askedOrders(session, selection);
    return { ...selection, orders, today: dayOf(session.nowMs, request.exchange) };
  } finally {
    await session.close();
  }
}

async function addAll(
  jobs: Iterable<JobData>,
  series: number,
  command: EnqueueCommand,
  { open, signals }: CommandQueue,
): Promise<ExitCode> {
  const { io, resolved } = command;
  const { options } = resolved;
  const wait = options.wait ? new Wait(open) : undefined;
  await wait?.begin();
  try {
    const { jobs: added, fresh } = await addJobs(jobs, { open, signals, wait, options, io });
    const known = added === fresh ? '' : `, ${numberText(added - fresh)} of them since an earlier command`;
    const where = `in the queue ${open.name} at ${shownRedis(open.address)}${known}`;
    if (options.json)
      printLines(io.stdout, [{ event: 'enqueued', queue: open.name, series, jobs: added, new: fresh }]);
    else if (!options.quiet)
      printLines(io.stderr, [`${countText(added, 'job')} for ${countText(series, 'series')} ${where}`]);
    if (wait === undefined) return 0;
    return await waitForJobs({ open, wait, jobs: added, options, io, signals });
  } finally {
    if (open.connection.client.status === 'ready') await wait?.close();
  }
}
