/** `cryptodl enqueue vision|metrics`: the selected series of a download as jobs of a queue. */
import { writeData } from '../cli/write-data.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { watchSignals } from '../model/io.js';
import type { Io } from '../model/io.js';
import { countText, numberText } from '../model/units.js';
import { surroundingsOf } from '../options/environment.js';
import { resolveOptions } from '../options/resolve.js';
import type { RawLayer, Resolved } from '../options/resolve.js';
import { readLists } from '../options/symbols.js';
import { redisProblem, shownRedis } from '../redis/redis-errors.js';
import type { Source } from '../source/source.js';
import { absolutePath, printLines } from '../text/printable.js';
import { addJobs } from './add-jobs.js';
import { loadBullMq } from './bullmq.js';
import { JOB_VERBS, lakeOf } from './job-data.js';
import type { JobData, JobVerb } from './job-data.js';
import { openQueue, redisAddress } from './open-queue.js';
import { selectJobs } from './select-jobs.js';
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
  const surroundings = surroundingsOf(io.environment);
  const out = lakeOf(options.out, (path) => absolutePath(path, surroundings.home));
  const warn = (message: string): void => {
    printLines(io.stderr, [`warning: ${message}`]);
  };
  const ofVerb = resolveOptions(verb, layers, source);
  if (ofVerb.options.symbols === undefined)
    throw usage('enqueue needs the symbols of the jobs', '--symbols all, or a list like BTCUSDT,ETHUSDT');
  // Before the listings, which may take long.
  if (!options.dryRun) await loadBullMq();
  const signals = watchSignals(io);
  try {
    const { series, jobs } = await selectJobs(verb, ofVerb, out, {
      source,
      surroundings,
      clock: io.clock,
      signal: signals.signal,
      read: readLists(io),
      warn,
      note: (lines) => {
        if (!options.quiet && !options.json)
          printLines(
            io.stderr,
            lines.map((line) => `  ${line}`),
          );
      },
    });
    if (options.dryRun) {
      const count = countOf(jobs);
      await writeData(io, [
        options.json
          ? { event: 'planned', series, jobs: count }
          : `${countText(count, 'job')} for ${countText(series, 'series')}`,
      ]);
      return 0;
    }
    return await addAll(jobs, series, command, { signals, warn });
  } finally {
    signals.release();
  }
}

interface Adding {
  readonly signals: ReturnType<typeof watchSignals>;
  readonly warn: (message: string) => void;
}

async function addAll(
  jobs: Iterable<JobData>,
  series: number,
  command: EnqueueCommand,
  { signals, warn }: Adding,
): Promise<ExitCode> {
  const { io, resolved } = command;
  const { options } = resolved;
  const open = await openQueue(options, 'enqueue', warn);
  try {
    const wait = options.wait ? new Wait(open.connection.client, open.name) : undefined;
    await wait?.begin();
    try {
      const { jobs: added, fresh } = await addJobs(jobs, {
        queue: open.queue,
        client: open.connection.client,
        wait,
        priority: options.priority,
        mostWaiting: options.maxWaiting,
        clock: io.clock,
        signal: signals.signal,
        whenFull: fullQueue(command, signals.signal),
        problem: (error) => redisProblem(open.address, error),
      });
      print(
        command,
        { event: 'enqueued', queue: open.name, series, jobs: added, new: fresh },
        `${countText(added, 'job')} for ${countText(series, 'series')} in the queue ${open.name} at ${shownRedis(open.address)}${added === fresh ? '' : `, ${numberText(added - fresh)} of them since an earlier command`}`,
      );
      if (wait === undefined) return 0;
      return await waitForJobs({ open, wait, jobs: added, options, io, signals });
    } finally {
      if (open.connection.client.status === 'ready') await wait?.end();
    }
  } finally {
    await open.close();
  }
}

const FULL_POLL_MS = 1000;

/** Says once that the queue is full, and waits. */
function fullQueue(
  { io, resolved }: EnqueueCommand,
  signal: AbortSignal,
): (waiting: number) => Promise<void> {
  let hasSaid = false;
  return async (waiting) => {
    if (!hasSaid && !resolved.options.quiet)
      printLines(io.stderr, [
        `${numberText(waiting)} jobs wait in the queue: adding more as workers take them (--max-waiting)`,
      ]);
    hasSaid = true;
    await io.clock.sleep(FULL_POLL_MS, signal);
  };
}

function countOf(jobs: Iterable<JobData>): number {
  let count = 0;
  for (const _ of jobs) count += 1;
  return count;
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
  );
}
