/** `cryptodl enqueue vision|metrics`: the selected series of a download as jobs of a queue. */
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { openSession } from '../../run/session/session.js';
import { dayOf, parseDay, monthOf, monthStart, dayText } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { countText, numberText } from '../../model/units.js';
import { choice } from '../../plan/options/parsers.js';
import { resolveOptions, type RawValues } from '../../plan/options/resolve.js';
import { listReader } from '../../plan/options/symbols.js';
import type { RunFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { shownRedis } from '../../http/redis/redis-errors.js';
import { askedOrders } from '../../plan/select/continue-orders.js';
import { selectSeries } from '../../plan/select/select-series.js';
import { ofShard, type RunSelection } from '../../plan/select/selection.js';
import { printLines } from '../../text/printable.js';
import { addJobs } from './add-jobs.js';
import { loadBullMq } from './bullmq.js';
import { JOB_VERBS, jobOptions, namedLake, jobData, type JobData, type JobVerb } from './job-data.js';
import { redisAddress, withQueue, type CommandQueue } from './open-queue.js';
import { PendingJobs, waitForJobs, type WaitFlag } from './wait-for-jobs.js';
import { findDataset, defaultPartition } from '../../exchange/exchange-spec.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { Series } from '../../model/task.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import type { AskedOrder } from '../../lake/order.js';

type EnqueueCommand = VerbCall<
  WaitFlag | 'dry-run' | 'max-waiting' | 'priority' | 'queue' | 'redis' | 'wait'
>;

/** Resolves with 0 after the last job was added; with --wait, with the exit code of the download. */
export async function enqueue(command: EnqueueCommand): Promise<ExitCode> {
  const { exchange, resolved, layers, verbs, io } = command;
  const verb = choice(JOB_VERBS)(command.operand ?? '', 'enqueue');
  const { options } = resolved;
  redisAddress(options, 'enqueue');
  const ofVerb = resolveOptions(verbs[verb], layers, exchange, listReader(io));
  if (ofVerb.options.symbols === undefined)
    throw usage('enqueue needs the symbols of the jobs', '--symbols all, or a list like BTCUSDT,ETHUSDT');
  // Before the listings, which may take long.
  if (!options.dryRun) await loadBullMq();
  return withSignals({ exchange, resolved: ofVerb, io }, async (request) => {
    const { requests, notes, today, orders } = await selectRequests(verb, request);
    if (!options.quiet && !options.json) for (const line of notes) printLines(io.stderr, [`  ${line}`]);
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
    const selection = ofShard(session, await selectSeries(session, request.resolved, verb));
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
  const pendingJobs = options.wait ? new PendingJobs(open) : undefined;
  await pendingJobs?.begin();
  try {
    const { jobs: added, fresh } = await addJobs(jobs, { open, signals, pendingJobs, options, io });
    const known = added === fresh ? '' : `, ${numberText(added - fresh)} of them since an earlier command`;
    const where = `in the queue ${open.name} at ${shownRedis(open.address)}${known}`;
    if (options.json)
      printLines(io.stdout, [{ event: 'enqueued', queue: open.name, series, jobs: added, new: fresh }]);
    else if (!options.quiet)
      printLines(io.stderr, [`${countText(added, 'job')} for ${countText(series, 'series')} ${where}`]);
    if (pendingJobs === undefined) return 0;
    return await waitForJobs({ open, pendingJobs, jobs: added, options, io, signals });
  } finally {
    if (open.connection.client.status === 'ready') await pendingJobs?.close();
  }
}

/** Months per job. A series whose files are months by default has small months. */
const SMALL_MONTHS = 12;

interface SplitOptions {
  readonly verb: JobVerb;
  readonly exchange: Exchange;
  /** The first day that is not over. */
  readonly today: number;
  /** Options that all jobs have. */
  readonly shared: RawValues;
  /** The orders of all jobs, which the first job has. */
  readonly orders: readonly AskedOrder[];
}

/**
 * The jobs of all series, newest periods first: jobs that follow each other are then of different series, which workers can write at
 * the same time. Nothing is kept in memory but the requests.
 */
export function* splitSeries(requests: readonly SelectedSeries[], options: SplitOptions): Generator<JobData> {
  let { orders } = options;
  const pending = new Set(
    requests.map((request) => ({ series: request.series, chunks: chunksOf(request, options) })),
  );
  for (const each of pending) {
    const { done, value } = each.chunks.next();
    pending.delete(each);
    if (done === true) continue;
    // Its next job comes after those of the other series.
    pending.add(each);
    yield jobData(options.verb, { ...options.shared, ...seriesOptions(each.series), ...value }, orders);
    orders = [];
  }
}

const seriesOptions = ({ market, dataset, interval, symbol }: Series): RawValues => ({
  market: [market],
  dataset: [dataset],
  ...(interval === undefined ? {} : { interval: [interval] }),
  symbols: [symbol],
});

/** The ranges of the jobs of a series, newest first. */
function* chunksOf(
  { series, ranges }: SelectedSeries,
  { exchange, today }: SplitOptions,
): Generator<Pick<RawValues, 'from' | 'to' | 'include-today'>> {
  const spec = findDataset(exchange, series.market, series.dataset);
  const isSmall = spec === undefined || defaultPartition(spec, series.interval) === 'month';
  const months = isSmall ? SMALL_MONTHS : 1;
  for (const range of ranges.toReversed()) {
    const first = Math.max(range.from, parseDay(exchange.firstDay) ?? 0);
    for (let to = range.to; to > first;) {
      // Years begin in January, so that a later command with another range makes the same jobs.
      const month = monthOf(to - 1);
      const from = Math.max(first, monthStart(month - (month % months)));
      const isToday = to > today;
      const last = isToday ? today - 1 : to - 1;
      if (last >= from)
        yield {
          from: [dayText(from)],
          to: [dayText(last)],
          ...(isToday ? { 'include-today': ['true'] } : {}),
        };
      to = from;
    }
  }
}
