/** The result of a check. */
import { toCryptodlError } from '../../model/errors.js';

/** `fail`: runs that need the checked part do not work now. `warn`: runs work, but something should be changed. */
export type Status = 'ok' | 'warn' | 'fail';

export interface CheckResult {
  /** `archive`, `clock`, `out` … */
  readonly check: string;
  /** The host or proxy that was checked; undefined where there is only one. */
  readonly of: string | undefined;
  readonly status: Status;
  readonly found: string;
  /** What the user can do; undefined when nothing needs to be done. */
  readonly next: string | undefined;
}

export function checkResult(
  check: string,
  status: Status,
  found: string,
  { of, next }: Partial<Pick<CheckResult, 'of' | 'next'>> = {},
): CheckResult {
  return { check, of, status, found, next };
}

/** A check that throws becomes a result with status `fail`. Rejects with the reason of the signal. */
export async function asResult(
  name: string,
  check: Promise<CheckResult>,
  signal: AbortSignal,
): Promise<CheckResult> {
  try {
    return await check;
  } catch (error) {
    signal.throwIfAborted();
    const { message, hint } = toCryptodlError(error);
    return checkResult(name, 'fail', message, { next: hint });
  }
}
