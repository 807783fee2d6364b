/** Exit codes, except for code 1 of a stdout that cannot be written (`process.ts`), and of a Node that is too old (`bin/cryptodl.js`). */
import type { ErrorCode } from './errors.js';

export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 130 | 143;

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

/** What a verb that reports has found. */
interface Findings {
  /** Manifests, and lines of them, that cannot be read. */
  readonly refused: number;
  /** Failed checks of the machine and the network. */
  readonly failedChecks: number;
  /** A finding that the same command finds again, or nothing to work on. */
  readonly lasting: boolean;
  /** A finding that a later run may end. */
  readonly passing: boolean;
}

/** The facts at the end of a command. Those that are left out did not happen. */
interface End extends Partial<RunStatus>, Partial<Findings> {
  /** The exit codes of jobs and other parts of the command, in any order. */
  readonly parts?: readonly ExitCode[];
}

/** The first of these that a part of the command, or the rest of it, ended with. */
const BY_RANK: readonly ExitCode[] = [130, 143, 2, 1, 6, 7, 3, 4, 5];

/** The exit code of a command: of its parts and its other facts, the most important one. */
export function exitCode({ parts = [], ...end }: End): ExitCode {
  const codes = [...parts, codeOfFacts(end)];
  return BY_RANK.find((code) => codes.includes(code)) ?? 0;
}

/** The errors that end a command with another code than 1. Code 3: the command may succeed later. */
const OF_ERROR: Partial<Record<ErrorCode, ExitCode>> = {
  usage: 2,
  locked: 6,
  'wait-too-long': 7,
  'time-over': 3,
  'redis-unreachable': 3,
  'lake-unreachable': 3,
};

/** The first condition that applies decides. */
function codeOfFacts(end: Omit<End, 'parts'>): ExitCode {
  const { waitedTooLong = 0, failedRetryable = 0, failedPermanent = 0, holes = 0, partial = 0 } = end;
  const { refused = 0, failedChecks = 0, lasting = false, passing = false } = end;
  // 128 and the number of the signal.
  if (end.signal !== undefined) return end.signal === 'SIGINT' ? 130 : 143;
  if (end.ended !== undefined) return OF_ERROR[end.ended] ?? 1;
  if (refused + failedChecks > 0) return 1;
  if (waitedTooLong > 0) return 7;
  if (lasting) return 4;
  if (passing || failedRetryable > 0) return 3;
  if (failedPermanent > 0) return 4;
  if (end.strict === true && holes + partial > 0) return 4;
  if (end.nothingIsError === true && end.written === 0) return 5;
  return 0;
}
