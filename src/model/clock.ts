/** Time, randomness and sleeping of a run; the real clock of the process. */
import { setTimeout as delay } from 'node:timers/promises';

/** Every module gets it as a parameter, so that tests control the time. */
export interface Clock {
  /** Wall clock in epoch milliseconds: for time stamps, and for dates that a server sends. */
  now(): number;
  /** Milliseconds of a clock that never jumps: for durations. */
  monotonic(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason as soon as it aborts. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /**
   * Calls back once after `delayMs`; `restart` begins the delay again. With `keepsAlive: false` the timer does not keep the
   * process running.
   */
  timer(delayMs: number, callback: () => void, options?: TimerOptions): Timer;
  /** Uniform in [0, 1). */
  random(): number;
}

interface TimerOptions {
  readonly keepsAlive?: boolean;
}

export interface Timer {
  /** Does nothing after `cancel`. */
  restart(): void;
  cancel(): void;
}

/** `setTimeout` fires at once for longer delays (Node documentation, "Timers"). */
const LONGEST_MS = 2 ** 31 - 1;
/** A timer that fires this late was suspended together with its process. Data that arrived meanwhile is handled first. */
const LATE_MS = 500;
const GRACE_MS = 50;

function lateTimer(delayMs: number, callback: () => void, { keepsAlive = true }: TimerOptions = {}): Timer {
  const start = (ms: number): NodeJS.Timeout => {
    const started = setTimeout(fire, ms);
    return keepsAlive ? started : started.unref();
  };
  let dueAt = performance.now() + delayMs;
  let isGraced = false;
  let isCancelled = false;
  const fire = (): void => {
    if (isGraced || performance.now() - dueAt <= LATE_MS) {
      callback();
      return;
    }
    isGraced = true;
    timer = start(GRACE_MS);
  };
  let timer = start(delayMs);
  return {
    restart: () => {
      if (isCancelled) return;
      dueAt = performance.now() + delayMs;
      if (!isGraced) {
        timer.refresh();
        return;
      }
      isGraced = false;
      clearTimeout(timer);
      timer = start(delayMs);
    },
    cancel: () => {
      isCancelled = true;
      clearTimeout(timer);
    },
  };
}

/** The same clock, set forward so that it does not begin before `ms`. */
export function notBefore(clock: Clock, ms: number): Clock {
  const behindMs = ms - clock.now();
  if (!(behindMs > 0)) return clock;
  return {
    now: () => clock.now() + behindMs,
    monotonic: () => clock.monotonic(),
    random: () => clock.random(),
    sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
    timer: (delayMs, callback, options) => clock.timer(delayMs, callback, options),
  };
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  timer: (delayMs, callback, options) => lateTimer(Math.min(delayMs, LONGEST_MS), callback, options),
  sleep: async (delayMs, signal) => {
    // Its own error has the reason of the signal only as its cause.
    await delay(Math.min(delayMs, LONGEST_MS), undefined, { signal }).catch(() => undefined);
    signal?.throwIfAborted();
  },
};
