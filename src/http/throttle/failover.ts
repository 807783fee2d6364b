/** What a run does without a host whose data another source has: it does not wait for the host. */

/** Longest pause of archive or listing, and longest delay before a retry, in milliseconds. */
const SHORT_WAIT_MS = 10_000;

/** Whether another source replaces a host without an answer: REST the archive with `--fill rest`, the archive REST with `--join archive`. */
export class Failover {
  /** `isPossible`: the other source may still have the data. */
  constructor(public isPossible: boolean) {}

  /** A host that asks for a longer wait counts as a host that does not answer. Milliseconds. */
  readonly longestWaitMs = (): number => (this.isPossible ? SHORT_WAIT_MS : Number.POSITIVE_INFINITY);
}
