/** `cryptodl enqueue vision|metrics`: the selected series of a download as jobs of a queue. */
import { writeData } from '../cli/write-data.js';
import { openSession } from '../download/session.js';
import { dayOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { watchSignals } from '../model/io.js';
import type { Io } from '../model/io.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import { countText } from '../model/units.js';
import { surroundingsOf } from '../options/environment.js';
import { resolveOptions } from '../options/resolve.js';
import type { RawLayer, Resolved } from '../options/resolve.js';
import { readLists } from '../options/symbols.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { shownRedis } from '../redis/redis-errors.js';
import { selectMetrics } from '../select/select-metrics.js';
import { selectSeries } from '../select/select-series.js';
import { ofShard } from '../select/selection.js';
import type { Source } from '../source/source.js';
import { absolutePath, printLines } from '../text/printable.js';
import { addJobs } from './add-jobs.js';
import { loadBullMq } from './bullmq.js';
import { JOB_VERBS, jobOptions, lakeOf } from './job-data.js';
import type { JobVerb } from './job-data.js';
import { openQueue, redisAddress } from './open-queue.js';
import { splitSeries } from './split-series.js';
import { waitForJobs } from './wait-for-jobs.js';
import { Wait } from './waits.js';

export interface EnqueueCommand {
  readonly source: Source;
  readonly resolved: Resolved;
  readonly layers: readonly RawLayer[];
  readonly io: Io;
}

/** Resolves with 0 after the last job was added; with --wait, with the exit code of the download. */
export async function enqueue(operand: string | undefined, command: EnqueueCommand): Promise<ExitCode> {
  const { source, resolved, layers, io } = command;
  const verb = verbOf(operand);
  const { options } = resolved;
  redisAddress(options, 'enqueue');
  // The values that the verb itself would refuse.
  const ofVerb = resolveOptions(verb, layers, source);
  if (ofVerb.options.symbols === undefined)
    throw usage('enqueue needs the symbols of the jobs', '--symbols all, or a list like BTCUSDT,ETHUSDT', {
      flags: { symbols: 'all' },
    });
  const warn = (message: string): void => {
    printLines(io.stderr, [`warning: ${message}`]);
  };
  // Before the listings, which may take long.
  if (!options.dryRun) await loadBullMq();
  const signals = watchSignals(io);
  try {
    const requests = await selectRequests(verb, ofVerb, { source, io, signal: signals.signal, warn });
    const { home } = surroundingsOf(io.environment);
    const jobs = splitSeries(requests, {
      verb,
      venue: source,
      today: dayOf(options.nowMs ?? io.clock.now(), source),
      shared: {
        ...jobOptions(ofVerb.texts),
        out: [lakeOf(options.out, (path) => absolutePath(path, home))],
      },
    });
    const what = countText(requests.length, 'series');
    if (options.dryRun) {
      let count = 0;
      for (const _ of jobs) count += 1;
      const planned = { event: 'planned', series: requests.length, jobs: count };
      await writeData(io, [options.json ? planned : `${countText(count, 'job')} for ${what}`]);
      return 0;
    }
    const open = await openQueue(options, 'enqueue', warn);
    try {
      const wait = options.wait ? new Wait(open.connection.client, open.name) : undefined;
      await wait?.begin();
      try {
        const added = await addJobs(jobs, {
          open,
          wait,
          priority: options.priority,
          mostWaiting: options.maxWaiting,
          clock: io.clock,
          signal: signals.signal,
          say: (line) => {
            if (!options.quiet) printLines(io.stderr, [line]);
          },
        });
        print(
          command,
          { event: 'enqueued', queue: open.name, series: requests.length, jobs: added },
          `${countText(added, 'job')} for ${what} in the queue ${open.name} at ${shownRedis(open.address)}`,
        );
        if (wait === undefined) return 0;
        return await waitForJobs({ open, wait, jobs: added, options, io, signals });
      } finally {
        if (open.connection.client.status === 'ready') await wait?.end();
      }
    } finally {
      await open.close();
    }
  } finally {
    signals.release();
  }
}

function print({ resolved, io }: EnqueueCommand, event: object, line: string): void {
  if (resolved.options.json) printLines(io.stdout, [event]);
  else if (!resolved.options.quiet) printLines(io.stderr, [line]);
}

function verbOf(operand: string | undefined): JobVerb {
  const verb = JOB_VERBS.find((known) => known === operand);
  if (verb !== undefined) return verb;
  throw usage(
    operand === undefined
      ? 'enqueue needs the verb of the jobs'
      : `enqueue: "${operand}" is not a verb of jobs`,
    'cryptodl enqueue vision …, or cryptodl enqueue metrics …',
    { operand: 'vision' },
  );
}

interface SelectContext extends Pick<EnqueueCommand, 'source' | 'io'> {
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
}

/** Sends the requests of the selection: listings of symbols, but nothing for a single series. */
async function selectRequests(
  verb: JobVerb,
  resolved: Resolved,
  { source, io, signal, warn }: SelectContext,
): Promise<readonly SeriesRequest[]> {
  const session = openSession({
    source,
    resolved,
    surroundings: surroundingsOf(io.environment),
    observer: { ...SILENT_OBSERVER, warn },
    clock: io.clock,
    verb,
    signal,
  });
  try {
    await session.refuseBanned(verb);
    const read = readLists(io);
    const select = verb === 'metrics' ? selectMetrics : selectSeries;
    const { requests, notes } = ofShard(session, await select(session, resolved, read));
    if (!resolved.options.quiet && !resolved.options.json)
      printLines(
        io.stderr,
        notes.map((note) => `  ${note}`),
      );
    if (requests.length === 0) throw usage('no series is selected', 'cryptodl list symbols shows the names');
    return requests;
  } finally {
    await session.close();
  }
}
