/** Exit codes, except for code 1 of a failed check of `doctor`, of a stdout that cannot be written (`process.ts`), and of a Node that is too old (`bin/cryptodl.js`). */
import type { ErrorCode } from './errors.js';

export interface RunStatus {
  readonly ended: ErrorCode | undefined;
  readonly signal: 'SIGINT' | 'SIGTERM' | undefined;
  /** Tasks that were not done because of a wait longer than --max-wait. */
  readonly waitedTooLong: number;
  readonly failedRetryable: number;
  readonly failedPermanent: number;
  readonly holes: number;
  readonly partial: number;
  readonly strict: boolean;
  /** Objects written to the lake. */
  readonly written: number;
  /** --error-on-nothing */
  readonly nothingIsError: boolean;
}

export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 130 | 143;

/** The exit code of a process that a signal ended: 128 and the number of the signal. */
export const exitCodeOfSignal = (signal: 'SIGINT' | 'SIGTERM'): 130 | 143 =>
  signal === 'SIGINT' ? 130 : 143;

/**
 * The exit code of a verb that reports findings. `lasting`: a finding that the same command finds again, or nothing to work on. `passing`:
 * a finding that a later run may end.
 */
export function exitCodeOfFindings(found: { lasting: boolean; passing?: boolean }): 0 | 3 | 4 {
  if (found.lasting) return 4;
  return found.passing === true ? 3 : 0;
}

/** The exit codes of errors that end a run. Code 3: the run may succeed later. All other errors: 1. */
const OF_ERROR: Partial<Record<ErrorCode, ExitCode>> = {
  usage: 2,
  locked: 6,
  'wait-too-long': 7,
  'time-over': 3,
  'redis-unreachable': 3,
  'lake-unreachable': 3,
};

export const exitCodeOfError = (code: ErrorCode): ExitCode => OF_ERROR[code] ?? 1;

/**
 * The first code that applies: 130 and 143 signals, 2 usage, 6 locked, 7 wait too long, 3 time over, no Redis or no bucket, 1 any other
 * fatal error;
 * then 7, 3 and 4 for tasks, 4 for --strict, 5 for --error-on-nothing, 0. Facts that are left out did not happen.
 */
export function exitCode(end: Partial<RunStatus>): ExitCode {
  const { waitedTooLong = 0, failedRetryable = 0, failedPermanent = 0, holes = 0, partial = 0 } = end;
  if (end.signal !== undefined) return exitCodeOfSignal(end.signal);
  if (end.ended !== undefined) return exitCodeOfError(end.ended);
  if (waitedTooLong > 0) return 7;
  if (failedRetryable > 0) return 3;
  if (failedPermanent > 0) return 4;
  if (end.strict === true && holes + partial > 0) return 4;
  if (end.nothingIsError === true && end.written === 0) return 5;
  return 0;
}

/** The exit codes of several jobs in one process, by rank. */
const BY_RANK: readonly ExitCode[] = [130, 143, 2, 1, 6, 7, 3, 4, 5];

/** The exit code of several jobs: the first one of `BY_RANK`. A signal counts as a further job. */
export function exitCodeOfJobs(codes: readonly ExitCode[], signal: RunStatus['signal']): ExitCode {
  const all = [...codes, ...(signal === undefined ? [] : [exitCodeOfSignal(signal)])];
  return BY_RANK.find((code) => all.includes(code)) ?? 0;
}
