/** A wait that a host asks for is worth its while up to here, also where another source has the same. */
const SHORT_WAIT_MS = 10_000;

/**
 * Whether another source is asked for what a host does not give (mechanism B10): REST for the archive with `--fill rest`,
 * the archive for REST with `--join archive`. Ahead of that, no request waits for a host that does not answer.
 */
export class Failover {
  isAhead: boolean;

  constructor(hasOtherSource: boolean) {
    this.isAhead = hasOtherSource;
  }

  /** A host that asks for a longer wait counts as one that does not answer. */
  readonly longestWaitMs = (): number => (this.isAhead ? SHORT_WAIT_MS : Number.POSITIVE_INFINITY);
}
