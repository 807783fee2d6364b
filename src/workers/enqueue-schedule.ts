/** `cryptodl enqueue … --every`: a schedule in the queue, whose jobs the workers add at each of its times. */
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { countText } from '../model/units.js';
import type { Options } from '../options/flags.js';
import type { RawLayer, Resolved } from '../options/resolve.js';
import { readPatterns } from '../options/symbols.js';
import type { ReadList, SymbolsOption } from '../options/symbols.js';
import { cronFields, whenOf } from '../model/times-of-day.js';
import { printLines, shellWord } from '../text/printable.js';
import { loadBullMq } from './bullmq.js';
import { openQueue } from './open-queue.js';
import type { PlanData } from './plan-data.js';
import { planCommand, planId } from './plan-data.js';
import { putSchedule, removeSchedule } from './schedules.js';

type Given = Pick<Resolved, 'options' | 'origins' | 'nameOf'>;

/** Throws usage errors for flags of a schedule that do not fit. */
export function refuseScheduleFlags({ options: { every, wait, dryRun }, origins, nameOf }: Given): void {
  if (origins.at === 'flag' && every?.kind !== 'hours')
    throw usage(
      `${nameOf('at')} changes nothing ${every === undefined ? 'without --every' : `with --every ${shellWord(every.text)}`}`,
      every === undefined
        ? 'add --every day, or leave --at out'
        : 'leave --at out: a cron pattern has its times',
    );
  if (every?.kind === 'never' && dryRun)
    throw usage(
      `${nameOf('dry-run')} has nothing to show with --every never`,
      'cryptodl status shows the schedules; leave --dry-run out to end this one',
    );
  if (every !== undefined && wait)
    throw usage(
      '--wait waits for jobs, and a schedule has none yet',
      'leave --wait out: cryptodl status shows the schedule, and its jobs when they are there',
    );
}

/**
 * The options with the symbols of lists in files in place of the lists: workers have other files. `layers`: the options of the command.
 */
export async function withoutLists(
  symbols: SymbolsOption,
  layers: readonly RawLayer[],
  read: ReadList,
): Promise<{ readonly symbols: readonly string[]; readonly layers: readonly RawLayer[] }> {
  const { names, globs, exclusions } = await readPatterns(symbols, read);
  const words = [...names, ...globs, ...exclusions.map((word) => `!${word}`)];
  const own: RawLayer = { origin: 'flag', values: { symbols: words }, nameOf: (name) => `--${name}` };
  return { symbols: words, layers: [own, ...layers] };
}

/** The pattern of a schedule and its first time after now. Throws a usage error for a pattern without a time. */
export async function timesOf(
  { every, atMinutes }: Options,
  nowMs: number,
): Promise<{ readonly pattern: string; readonly nextMs: number }> {
  const pattern = every?.kind === 'hours' ? cronFields(whenOf(atMinutes, every.hours)) : (every?.text ?? '');
  const bullmq = await loadBullMq();
  let reason = 'no day has this date';
  try {
    const nextMs = bullmq.nextTime(pattern, nowMs);
    if (nextMs !== undefined) return { pattern, nextMs };
  } catch (error) {
    if (error instanceof Error) reason = error.message;
  }
  throw usage(
    `--every: "${pattern}" has no times (${reason})`,
    "every day at 10:00 UTC: --every '0 10 * * *'",
  );
}

interface Change {
  readonly options: Options;
  readonly io: Io;
  readonly warn: (message: string) => void;
}

/** `jobs`: what the schedule would add now. */
export async function addSchedule(
  plan: PlanData,
  pattern: string,
  jobs: { readonly count: number; readonly series: number },
  { options, io, warn }: Change,
): Promise<ExitCode> {
  const open = await openQueue(options, 'enqueue', warn);
  try {
    const { nextMs, isChanged } = await putSchedule(open.queue, pattern, plan);
    const next = new Date(nextMs).toISOString();
    const event = { event: 'scheduled', queue: open.name, id: planId(plan), every: pattern, next, isChanged };
    const queue = open.name === 'main' ? '' : ` --queue ${open.name}`;
    print(options, io, { ...event, series: jobs.series, jobs: jobs.count }, [
      `${isChanged ? 'scheduled' : 'already scheduled'} in the queue ${open.name}: ${shellWord(pattern)} UTC, next at ${next}; now it would be ${countText(jobs.count, 'job')} for ${countText(jobs.series, 'series')}`,
      `  to end it: cryptodl enqueue ${planCommand(plan)} --redis URL${queue} --every never`,
    ]);
    return 0;
  } finally {
    await open.close();
  }
}

export async function endSchedule(plan: PlanData, { options, io, warn }: Change): Promise<ExitCode> {
  const open = await openQueue(options, 'enqueue', warn);
  try {
    const isRemoved = await removeSchedule(open.queue, plan);
    print(options, io, { event: 'unscheduled', queue: open.name, id: planId(plan), isRemoved }, [
      isRemoved
        ? `the schedule is removed from the queue ${open.name}; its jobs that wait stay`
        : `the queue ${open.name} has no schedule of this command: cryptodl status --redis URL shows the schedules`,
    ]);
    return 0;
  } finally {
    await open.close();
  }
}

function print({ json, quiet }: Options, io: Io, event: object, lines: readonly string[]): void {
  if (json) printLines(io.stdout, [event]);
  else if (!quiet) printLines(io.stderr, lines);
}
