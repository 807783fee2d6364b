import type { ErrorCode } from './errors.js';

/** Everything that the exit code depends on. */
export interface RunStatus {
  /** What ended the run before its end, if anything did. */
  readonly ended: ErrorCode | undefined;
  readonly signal: 'SIGINT' | 'SIGTERM' | undefined;
  /** Tasks that a limit or ban beyond --max-wait kept from being done. */
  readonly waitedTooLong: number;
  readonly failedRetryable: number;
  readonly failedPermanent: number;
  readonly holes: number;
  readonly partial: number;
  readonly strict: boolean;
  /** Objects that became part of the lake. */
  readonly written: number;
  /** --error-on-nothing */
  readonly nothingIsError: boolean;
}

export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 130 | 143;

/** Of a run that did not come to work. */
export function exitCodeOfError(code: ErrorCode): ExitCode {
  return exitCode({
    ended: code,
    signal: undefined,
    waitedTooLong: 0,
    failedRetryable: 0,
    failedPermanent: 0,
    holes: 0,
    partial: 0,
    strict: false,
    written: 0,
    nothingIsError: false,
  });
}

/** Of a lake that was looked at: `below`: series with less than --min; `refused`: lines that could not be read. */
export function exitCodeOfCoverage({
  below,
  refused,
}: {
  readonly below: number;
  readonly refused: number;
}): ExitCode {
  if (refused > 0) return exitCodeOfError('manifest-damaged');
  return below > 0 ? 4 : 0;
}

/** The first that applies, in the order of the design, section 4. The only place that decides. */
export function exitCode(end: RunStatus): ExitCode {
  if (end.signal === 'SIGINT') return 130;
  if (end.signal === 'SIGTERM') return 143;
  if (end.ended === 'usage') return 2;
  if (end.ended === 'locked') return 6;
  if (end.ended === 'wait-too-long') return 7;
  if (end.ended === 'time-over') return 3;
  if (end.ended !== undefined) return 1;
  if (end.waitedTooLong > 0) return 7;
  if (end.failedRetryable > 0) return 3;
  if (end.failedPermanent > 0) return 4;
  if (end.strict && end.holes + end.partial > 0) return 4;
  if (end.nothingIsError && end.written === 0) return 5;
  return 0;
}

/** 0 is the most important; a code that is new needs its place here. */
const RANKS: Readonly<Record<ExitCode, number>> = {
  130: 0,
  143: 1,
  2: 2,
  1: 3,
  6: 4,
  7: 5,
  3: 6,
  4: 7,
  5: 8,
  0: 9,
};

/** Of a run of several jobs: the signal, else the most important of theirs in the order of the design, section 4. */
export function exitCodeOfJobs(codes: readonly ExitCode[], signal: RunStatus['signal']): ExitCode {
  const all = [...codes, ...(signal === undefined ? [] : ([signal === 'SIGINT' ? 130 : 143] as const))];
  return all.reduce<ExitCode>((most, code) => (RANKS[code] < RANKS[most] ? code : most), 0);
}
