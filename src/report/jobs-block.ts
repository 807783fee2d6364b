/** The lines at the end of `cryptodl run`: the end of each job. */
import { OUTCOME_KINDS } from '../model/outcome.js';
import { durationText } from '../model/units.js';
import { countsText } from './closing-block.js';
import { nextStep } from './tally.js';
import type { Failed, Tally } from './tally.js';

export interface EndedJob {
  readonly name: string;
  /** Undefined for a job that was not started. */
  readonly exitCode: number | undefined;
  /** Undefined for a job that began no object. */
  readonly outcomes: Tally['outcomes'] | undefined;
  /** Objects that were not begun, because the job ended early. */
  readonly undone: number;
}

export interface JobsClosing {
  readonly jobs: readonly EndedJob[];
  readonly elapsedMs: number;
  readonly reportPath: string | undefined;
  /** Counts of the failures of all jobs. */
  readonly failed: Failed;
  /** The next step, unless it depends on the failures. */
  readonly next: string | undefined;
}

export function jobsBlock({ jobs, elapsedMs, reportPath, failed, next }: JobsClosing): string[] {
  const succeeded = jobs.filter(({ exitCode }) => exitCode === 0).length;
  const width = Math.max(10, ...jobs.map(({ name }) => name.length));
  const all =
    succeeded === jobs.length ? 'all succeeded' : `${succeeded} succeeded, ${jobs.length - succeeded} failed`;
  const step = next ?? (reportPath === undefined ? undefined : nextStep(failed, reportPath));
  return [
    `${jobs.length} job${jobs.length === 1 ? '' : 's'}: ${all}, in ${durationText(elapsedMs)}`,
    ...jobs.map((job) => `  ${job.name.padEnd(width)} ${endOf(job)}`),
    ...(reportPath === undefined ? [] : [`  ${'failures'.padEnd(width)} ${reportPath}`]),
    ...(step === undefined ? [] : [`  ${'next'.padEnd(width)} ${step}`]),
  ];
}

function endOf({ exitCode, outcomes, undone }: EndedJob): string {
  if (exitCode === undefined) return 'not started';
  const counted = outcomes === undefined ? 'nothing done' : countsText(outcomes, undone);
  return exitCode === 0 ? counted : `${counted} (exit code ${exitCode})`;
}

/** Counts of all jobs together. */
export function sumOfOutcomes(jobs: readonly EndedJob[]): Record<keyof Tally['outcomes'], number> {
  const sum = { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 0 };
  for (const { outcomes } of jobs) for (const kind of OUTCOME_KINDS) sum[kind] += outcomes?.[kind] ?? 0;
  return sum;
}
