/** The last lines of a run of several jobs: how each ended, and what to type next. */
import { OUTCOME_KINDS } from '../outcome.js';
import { durationText } from '../units.js';
import { countsText } from './closing-block.js';
import { nextStep } from './next-step.js';
import type { Failed } from './next-step.js';
import type { Tally } from './tally.js';

export interface EndedJob {
  readonly name: string;
  /** Undefined for a job whose turn did not come. */
  readonly exitCode: number | undefined;
  /** Undefined for one that began nothing. */
  readonly outcomes: Tally['outcomes'] | undefined;
  /** Objects that were not done, because the job was ended. */
  readonly undone: number;
}

export interface JobsClosing {
  readonly jobs: readonly EndedJob[];
  readonly elapsedMs: number;
  readonly reportPath: string | undefined;
  /** Of all jobs. */
  readonly failed: Failed;
}

export function jobsBlock({ jobs, elapsedMs, reportPath, failed }: JobsClosing): string[] {
  const well = jobs.filter(({ exitCode }) => exitCode === 0).length;
  const width = Math.max(10, ...jobs.map(({ name }) => name.length));
  const all = well === jobs.length ? 'all well' : `${well} well, ${jobs.length - well} not`;
  return [
    `${jobs.length} job${jobs.length === 1 ? '' : 's'}: ${all}, in ${durationText(elapsedMs)}`,
    ...jobs.map((job) => `  ${job.name.padEnd(width)} ${endOf(job)}`),
    ...(reportPath === undefined
      ? []
      : [
          `  ${'failures'.padEnd(width)} ${reportPath}`,
          `  ${'next'.padEnd(width)} ${nextStep(failed, reportPath)}`,
        ]),
  ];
}

function endOf({ exitCode, outcomes, undone }: EndedJob): string {
  if (exitCode === undefined) return 'not begun';
  const counted = outcomes === undefined ? 'nothing done' : countsText(outcomes, undone);
  return exitCode === 0 ? counted : `${counted} (exit code ${exitCode})`;
}

/** Of all jobs together. */
export function sumOfOutcomes(jobs: readonly EndedJob[]): Record<keyof Tally['outcomes'], number> {
  const sum = { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 0 };
  for (const { outcomes } of jobs) for (const kind of OUTCOME_KINDS) sum[kind] += outcomes?.[kind] ?? 0;
  return sum;
}
