/** How fast bodies may arrive, all connections together (`--bwlimit`). */
import type { Clock } from '../../model/clock.js';

export interface Bandwidth {
  /** Counts bytes that arrived; a promise means: nothing more before it is fulfilled. */
  take(bytes: number): Promise<void> | undefined;
}

export const UNLIMITED: Bandwidth = { take: () => undefined };

/** Sleeping for less is not worth a timer; the debt is paid with the next chunk. */
const LEAST_WAIT_MS = 5;

/** Bytes are paid for after they came: each chunk waits until the chunks before it have been paid. */
export function limitBandwidth(bytesPerSecond: number, clock: Clock, signal: AbortSignal): Bandwidth {
  let paidUntil = clock.monotonic();
  return {
    take: (bytes) => {
      const now = clock.monotonic();
      paidUntil = Math.max(paidUntil, now) + (bytes / bytesPerSecond) * 1000;
      const waitMs = paidUntil - now;
      return waitMs < LEAST_WAIT_MS ? undefined : clock.sleep(waitMs, signal);
    },
  };
}
