/** The limit of received bytes per second, over all connections (`--bwlimit`). */
import type { Clock } from '../../model/clock.js';

export interface Bandwidth {
  /** Counts received bytes. The caller must not read on before the returned promise is fulfilled. */
  take(bytes: number): Promise<void> | undefined;
}

export const UNLIMITED: Bandwidth = { take: () => undefined };

/** Shorter sleeps are not worth a timer. The next chunk pays the debt. Milliseconds. */
const LEAST_WAIT_MS = 5;

/** Bytes are paid after their arrival: each chunk waits until earlier chunks are paid. */
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
