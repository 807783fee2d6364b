import type { CryptodlError } from '../errors.js';
import type { Resolved } from '../options/resolve.js';
import type { PastFailures } from '../run/want-failures.js';

/** One of the runs of `cryptodl run`, or of its report. */
export interface Job {
  readonly name: string;
  readonly verb: 'vision' | 'metrics';
  readonly resolved: Resolved;
  /** Run exactly these once more. */
  readonly failures?: PastFailures;
  /** An error as one of this job. */
  readonly blame: (error: CryptodlError) => CryptodlError;
}
