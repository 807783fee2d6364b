/** The failure and the counts that a job has with it. */
import type { Counts } from '../../model/counters.js';
import { CryptodlError } from '../../model/errors.js';
import { isRecord } from '../../text/json.js';
import { MOST_CHARACTERS } from './job-data.js';

/** Daily objects of a year, and some more. */
const MOST_KEYS = 400;

export const jobFailure = (
  { code, retryable, message }: CryptodlError,
  keys: readonly string[],
  attempts: number,
) => ({
  code,
  retryable,
  attempts,
  message: message.slice(0, MOST_CHARACTERS),
  /** The failed objects, or as many of them as a job can have. */
  keys: keys.slice(0, MOST_KEYS),
});
export type JobFailure = ReturnType<typeof jobFailure>;

type JobError = Readonly<{ code: string; retryable: boolean }>;

/** The counts of a job that failed before its objects were known: it counts as one object. */
export const countsOfFailure = ({ code, retryable }: JobError): Counts => ({
  'outcome.failed': 1,
  [`failedBy.${code}`]: 1,
  [retryable ? 'failedRetryable' : 'failedPermanent']: 1,
});

/** The counts that a job has with it, as far as they are whole numbers. */
export function countsIn(value: unknown): Counts {
  const counts = isRecord(value) && isRecord(value['counts']) ? value['counts'] : {};
  return Object.fromEntries(
    Object.entries(counts).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])),
  );
}

/** BullMQ itself fails a job whose lease ran out too often: each of its workers ended while it had the job. */
export function stalledFailure(failedReason = '', attempts = 0): JobFailure | undefined {
  if (!/stalled more than/.test(failedReason)) return undefined;
  const error = new CryptodlError('job-stalled', 'each worker that began the job ended before the job');
  return jobFailure(error, [], attempts);
}

/** The code of the failure of a job as the queue has it; undefined if it has none that this program has written. */
export function failureOf({
  failedReason,
  progress,
}: {
  readonly failedReason?: string;
  readonly progress: unknown;
}): JobError | undefined {
  const stalled = stalledFailure(failedReason);
  if (stalled !== undefined || !isRecord(progress)) return stalled;
  const { code, retryable, message } = progress;
  if (typeof code !== 'string' || typeof retryable !== 'boolean' || typeof message !== 'string')
    return undefined;
  return { code: /^[a-z0-9-]{1,40}$/.test(code) ? code : 'unknown', retryable };
}
