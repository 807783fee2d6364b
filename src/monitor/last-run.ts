/** The fate of the newest run of a lake. */
import { toCryptodlError } from '../model/errors.js';
import { refuseIfLocked } from '../lake/lock.js';
import type { LakePaths } from '../lake/layout.js';
import type { Clock } from '../model/clock.js';
import { agoText } from '../model/units.js';
import { isSame, readRunsUntil } from './run-history.js';
import { readRuns, readStarts } from './run-record.js';
import type { RunRecord, RunStart } from './run-record.js';
import { printable } from '../text/printable.js';

/** `killed`: the run left only its start. `failed`: it could not begin. */
export interface LastRun {
  readonly verb: string;
  readonly job: string | undefined;
  readonly startedAt: string;
  readonly fate: 'ended' | 'failed' | 'killed' | 'running';
  readonly exitCode: number | undefined;
  readonly error: string | undefined;
  /** Whether the lake has an order of what the run asked for: the run wrote it, or an earlier run of the same selection did. */
  readonly isOrdered: boolean;
}

/** Whether a run writes to the lake now. Rejects with errors of the system. */
export async function isRunning({ internal }: LakePaths, clock: Pick<Clock, 'sleep'>): Promise<boolean> {
  try {
    await refuseIfLocked(internal, clock);
    return false;
  } catch (error) {
    if (toCryptodlError(error).code === 'locked') return true;
    throw error;
  }
}

/** Undefined if no run has left a record. Rejects with errors of the system. */
export async function lastRun(paths: LakePaths, running: boolean): Promise<LastRun | undefined> {
  const start = (await readStarts(paths)).at(-1);
  const run = (await readRuns(paths, 1)).runs.at(-1);
  if (start !== undefined && (run === undefined || start.id > run.id)) {
    const last = ofStart(start, running);
    if (last.isOrdered) return last;
    const isOfStart = (other: RunRecord): boolean => isSame(other, start);
    return { ...last, isOrdered: (await readRunsUntil(paths, isOfStart)).some(isOfStart) };
  }
  if (run === undefined) return undefined;
  const { verb, job, startedAt, summary } = run;
  return {
    verb,
    job,
    startedAt,
    fate: 'ended',
    exitCode: summary.exitCode,
    error: undefined,
    isOrdered: true,
  };
}

/** A start without an end is that of a run that was killed, unless a run holds the lock. */
export function ofStart(start: RunStart, running: boolean): LastRun {
  const { verb, job, startedAt, ended } = start;
  const fate = ended !== undefined ? 'failed' : running ? 'running' : 'killed';
  // Runs without symbols of their own continue the orders of the lake.
  const hasOwn = (verb === 'vision' || verb === 'metrics') && start.options['symbols'] !== undefined;
  const isOrdered = start.isOrdered === true || !hasOwn;
  return { verb, job, startedAt, fate, exitCode: undefined, error: ended?.message, isOrdered };
}

/** `vision, 3 h ago (…): exit code 0` */
export function fateText({ verb, job, startedAt, fate, exitCode, error }: LastRun, nowMs: number): string {
  const name = printable(job === undefined ? verb : `${verb} ${job}`);
  const when = agoText(Date.parse(startedAt), nowMs);
  const texts = {
    ended: `exit code ${exitCode ?? 0}`,
    failed: `could not begin: ${printable(error ?? '')}`,
    killed: 'was killed before its end',
    running: 'is running',
  };
  return `${name}, ${when}: ${texts[fate]}`;
}
