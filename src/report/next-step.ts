/** The command to type after a run with failures. */
import type { ErrorCode } from '../model/errors.js';
import { shellWord } from '../text/printable.js';
import type { Tally } from './tally.js';

export type Failed = Pick<Tally, 'failedBy' | 'failedPermanent' | 'failedRetryable' | 'waitedTooLong'>;

/** `reportPath`: as the user types it. */
export function nextStep(
  { failedBy, failedPermanent, failedRetryable, waitedTooLong }: Failed,
  reportPath: string,
): string {
  const retry = `cryptodl retry ${shellWord(reportPath)}`;
  const stale = failedBy[STALE] ?? 0;
  const mayCome = failedRetryable + waitedTooLong;
  if (mayCome === 0 && failedPermanent > 0) return `${AGAIN}; ${shellWord(reportPath)} names the objects`;
  return stale > 0 && stale === mayCome ? `${retry} --stale-checksum warn` : retry;
}

/** The sum of several runs. */
export function sumOfFailed(runs: readonly Failed[]): Failed {
  const failedBy: Partial<Record<ErrorCode, number>> = {};
  const sum = { failedPermanent: 0, failedRetryable: 0, waitedTooLong: 0 };
  for (const run of runs) {
    for (const [code, count] of Object.entries(run.failedBy) as [ErrorCode, number][])
      failedBy[code] = (failedBy[code] ?? 0) + count;
    for (const name of ['failedPermanent', 'failedRetryable', 'waitedTooLong'] as const)
      sum[name] += run[name];
  }
  return { failedBy, ...sum };
}

const STALE: ErrorCode = 'sidecar-stale';
/** For failures that a retry cannot change. */
const AGAIN = 'run the same command again later: a retry now fails the same way';
