/** What became of the last run of a lake. */
import type { LakePaths } from '../../lake/layout.js';
import { readRuns, readStarts } from './run-files.js';
import type { RunStart } from './run-record.js';
import { toCryptodlError } from '../../model/errors.js';
import { refuseIfLocked } from '../../lake/lock.js';
import { agoText } from '../../model/units.js';
import { printable } from '../../text/printable.js';

export interface LastRun extends Pick<RunStart, 'verb' | 'job' | 'startedAt'> {
  /** `killed`, `running`: only the start is there. `failed`: the run could not begin. */
  readonly fate: 'ended' | 'failed' | 'killed' | 'running';
  readonly exitCode: number | undefined;
  readonly error: string | undefined;
}

/** Whether a run writes to the lake now. Rejects with errors of the system. */
export async function isRunning({ internal }: LakePaths): Promise<boolean> {
  try {
    await refuseIfLocked(internal);
    return false;
  } catch (error) {
    if (toCryptodlError(error).code === 'locked') return true;
    throw error;
  }
}

/** Undefined if no run has left a record or a start. Rejects with errors of the system. */
export async function lastRun(paths: LakePaths, running: boolean): Promise<LastRun | undefined> {
  const start = (await readStarts(paths)).starts.at(-1);
  const run = (await readRuns(paths, 1)).runs.at(-1);
  if (start !== undefined && (run === undefined || start.id > run.id)) return ofStart(start, running);
  if (run === undefined) return undefined;
  const { verb, job, startedAt, summary } = run;
  const { exitCode } = summary;
  return { verb, job, startedAt, fate: 'ended', exitCode, error: undefined };
}

/** A start without an end is that of a run that was killed, unless a run holds the lock. */
export function ofStart(start: RunStart, running: boolean): LastRun {
  const { verb, job, startedAt, ended } = start;
  const fate = ended !== undefined ? 'failed' : running ? 'running' : 'killed';
  return { verb, job, startedAt, fate, exitCode: undefined, error: ended?.message };
}

/** `vision, 3h 0m ago (2026-11-21 05:00 UTC): exit code 0`. The time is the start of the run. */
export function fateText({ fate, exitCode, error, ...run }: LastRun, nowMs: number): string {
  const when = agoText(Date.parse(run.startedAt), nowMs);
  const texts = {
    ended: `exit code ${exitCode ?? 0}`,
    failed: `could not begin: ${printable(error ?? '')}`,
    killed: 'was killed before its end',
    running: 'is running',
  };
  return `${printable(runName(run))}, ${when}: ${texts[fate]}`;
}

/** The runs of one crontab line or job: `vision`, or `vision bars` for a job. */
export function runName({ verb, job }: Pick<RunStart, 'verb' | 'job'>): string {
  return job === undefined ? verb : `${verb} ${job}`;
}
