/** The shape of a row of the table of verbs, and texts about exit codes. */

/** A row of the table. */
export interface VerbText {
  /** The operand as help shows it; in brackets if optional. */
  readonly operand?: string;
  /** The words after `--`, as help shows them. */
  readonly behind?: string;
  /** The accepted values of the operand, if they are a list. */
  readonly choices?: readonly string[];
  /** `--help` shows the part before the first semicolon. */
  readonly doc: string;
  /** The exit codes except for those of signals. `--help` shows the part before the first semicolon. */
  readonly exits: ExitTexts;
  readonly examples: readonly string[];
  /** Other names that work. Help does not show them. */
  readonly aka: readonly string[];
}

export type ExitTexts = Readonly<Partial<Record<0 | 1 | 2 | 3 | 4 | 5 | 6 | 7, string>>>;

export const BASE_EXITS = {
  0: 'done',
  1: 'fatal; for example a full disk',
  2: 'usage; a wrong flag, value or file',
} as const satisfies ExitTexts;
export const LIMIT_EXIT = 'limit; a ban or a rate limit lasts longer than --max-wait';
export const LOCK_EXIT = 'locked; another run holds the lock of the lake';
export const RUN_EXITS = {
  ...BASE_EXITS,
  3: 'try later; cryptodl retry requests the objects of the failure report again',
  4: 'failed; a retry does not help; with --strict also for series that lack data',
  5: 'nothing new; with --error-on-nothing',
  6: LOCK_EXIT,
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;

/** With `--wait`, `enqueue` ends with the code of the download. */
export const QUEUE_EXITS = {
  ...BASE_EXITS,
  3: 'try later; no connection to the Redis server, or with --wait: a job failed for now',
  4: 'failed; with --wait: a retry does not help; with --strict also for series that lack data',
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;
