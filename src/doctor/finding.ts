/** What an examination finds: one line for each thing that was looked at. */

/** `fail`: what needs it does not work now. `warn`: it works, and somebody should look at it. */
export type Status = 'ok' | 'warn' | 'fail';

export interface Finding {
  /** `dns`, `archive`, `disk` … */
  readonly check: string;
  /** Host, folder or bucket that it is about; empty where there is only one. */
  readonly of: string;
  readonly status: Status;
  readonly found: string;
  /** What to do about it; empty where nothing is to be done. */
  readonly next: string;
  /** For programs: numbers have their unit in their name. */
  readonly figures: Readonly<Record<string, number | string>>;
}

type Words = Partial<Pick<Finding, 'of' | 'next' | 'figures'>>;

export function finding(check: string, status: Status, found: string, words: Words = {}): Finding {
  return { check, of: '', next: '', figures: {}, ...words, status, found };
}

/** Something that works, and should be otherwise. */
export interface Issue {
  readonly found: string;
  /** What to type instead. */
  readonly next: string;
}

/** `ok` without issues; with them all of them are in one line. */
export function judged(
  check: string,
  found: string,
  issues: readonly Issue[],
  figures: Finding['figures'],
): Finding {
  if (issues.length === 0) return finding(check, 'ok', found, { figures });
  const said = [found, ...issues.map((issue) => issue.found)].join('; ');
  const next = [...new Set(issues.map((issue) => issue.next))].join(', ');
  return finding(check, 'warn', said, { next, figures });
}
