/** The limit of received bytes per second, for all connections together (`--bwlimit`). */
import type { Clock } from '../../model/clock.js';

export interface Bandwidth {
  /** Counts received bytes. The caller must not read on before the returned promise is fulfilled. */
  take(bytes: number): Promise<void> | undefined;
}

export const UNLIMITED: Bandwidth = { take: () => undefined };

/** A shorter wait is added to the wait of a later chunk, because a timer would cost more than the wait. Milliseconds. */
const LEAST_WAIT_MS = 5;

/** Each received chunk takes its share of time, after which the next read begins. Connections that share `used`, also of several runs, share the limit. */
export function limitBandwidth(
  bytesPerSecond: number,
  clock: Clock,
  signal: AbortSignal,
  used = { untilMs: clock.monotonic() },
): Bandwidth {
  return {
    take: (bytes) => {
      const now = clock.monotonic();
      used.untilMs = Math.max(used.untilMs, now) + (bytes / bytesPerSecond) * 1000;
      const waitMs = used.untilMs - now;
      return waitMs < LEAST_WAIT_MS ? undefined : clock.sleep(waitMs, signal);
    },
  };
}
