/** The result of one check of `cryptodl doctor`; each is printed as one line. */
import { CryptodlError } from '../model/errors.js';

/**
 * `fail`: runs that need the checked part do not work now. `warn`: runs work, but something should be changed. `note`: a problem
 * of a host that no run here uses, or checks that a failure prevented.
 */
export type Status = 'ok' | 'warn' | 'fail' | 'note';

export interface CheckResult {
  /** `dns`, `archive`, `out` … */
  readonly check: string;
  /** The host, folder or bucket that was checked; empty where there is only one. */
  readonly of: string;
  readonly status: Status;
  readonly found: string;
  /** What the user can do; empty when nothing needs to be done. */
  readonly next: string;
  /** For programs. Names of durations and sizes end in their unit. */
  readonly figures: Readonly<Record<string, number | string>>;
}

type Details = Partial<Pick<CheckResult, 'of' | 'next' | 'figures'>>;

export function checkResult(check: string, status: Status, found: string, words: Details = {}): CheckResult {
  return { check, of: '', next: '', figures: {}, ...words, status, found };
}

/** A setting that works but should be changed. */
export interface Issue {
  readonly found: string;
  /** The flags to use instead. */
  readonly next: string;
}

/** `ok` without issues, else one `warn` that lists all of them. */
export function settingsResult(
  check: string,
  found: string,
  issues: readonly Issue[],
  figures: CheckResult['figures'],
): CheckResult {
  if (issues.length === 0) return checkResult(check, 'ok', found, { figures });
  const message = [found, ...issues.map((issue) => issue.found)].join('; ');
  const next = [...new Set(issues.map((issue) => issue.next))].join(', ');
  return checkResult(check, 'warn', message, { next, figures });
}

/** A check that throws becomes a result with status `fail`. */
export function asResult(
  name: string,
  check: Promise<CheckResult>,
  signal: AbortSignal,
): Promise<CheckResult> {
  return check.catch((error: unknown) => {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    const hint = error instanceof CryptodlError ? error.hint : undefined;
    return checkResult(
      name,
      'fail',
      `the check failed: ${message}`,
      hint === undefined ? {} : { next: hint },
    );
  });
}
