/** The deadlines of one attempt. */
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import type { ErrorCode } from '../../model/errors.js';
import { hostOf } from '../../model/fetch.js';
import type { Layer, Sign } from '../../model/fetch.js';
import { durationText } from '../../model/units.js';

export interface Deadlines {
  readonly headersTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Base of the total timeout. For each 16 KiB of the expected and of the sent body, one second is added. */
  readonly totalTimeoutMs: number;
}

const SLOWEST_BYTES_PER_SECOND = 16 * 1024;
/** An attempt ends if it receives fewer than `FLOOR_BYTES` of its body in `FLOOR_MS` milliseconds. */
const FLOOR_BYTES = 30 * 1024;
const FLOOR_MS = 30_000;
const NEVER = Number.POSITIVE_INFINITY;

/**
 * The layer of timeouts. An attempt has four timeouts: for the headers, for silence within the body, for a slow body, and for the whole
 * attempt. That for the headers begins when the request is sent, after the wait for a socket, and again with each chunk of a sent body.
 */
export function timeout(clock: Clock, options: Deadlines): Layer {
  const expiries = new Expiries();
  return (next) => async (request, context) => {
    context.signal.throwIfAborted();
    const expiry = expiries.begin(context.signal);
    const expire = (code: ErrorCode, text: string): void => {
      expiry.end(new CryptodlError(code, `${hostOf(request.url)}: ${text}`));
    };
    const sentBytes = request.sends?.length ?? 0;
    const expectedMs = (((request.expect?.bytes ?? 0) + sentBytes) / SLOWEST_BYTES_PER_SECOND) * 1000;
    const totalTimeoutMs = options.totalTimeoutMs + expectedMs;
    const watch = new Watch(clock, { ...options, totalTimeoutMs }, expire);
    const onActivity = (sign: Sign, value = 0): void => watch.see(sign, value);
    try {
      return await next(request, { ...context, expiry, onActivity });
    } finally {
      watch.stop();
      expiries.release(context.signal, expiry);
    }
  };
}

/** The deadlines of one attempt on the monotonic clock. `see` moves them when the attempt makes progress. */
class Watch {
  #totalAt: number;
  #headersAt = NEVER;
  #idleAt = NEVER;
  #floorAt = NEVER;
  #bytes = 0;
  #pausedSince: number | undefined;
  #pausedMs = 0;
  /** The part of `#pausedMs` by which the whole attempt may already take longer. */
  #grantedMs = 0;
  #timer: Timer | undefined;
  /** When the timer ends, on the monotonic clock. */
  #wakesAt = NEVER;

  constructor(
    private readonly clock: Clock,
    private readonly options: Deadlines,
    private readonly expire: (code: ErrorCode, text: string) => void,
  ) {
    this.#totalAt = clock.monotonic() + options.totalTimeoutMs;
    this.#wakeAt(this.#totalAt);
  }

  /** No timer follows, which would keep the process running. */
  stop(): void {
    this.#timer?.cancel();
    this.#wakesAt = Number.NEGATIVE_INFINITY;
  }

  /** An attempt that makes progress only changes a number: the timer that was set for an earlier deadline finds the next one. */
  #wakeAt(atMs: number): void {
    if (atMs >= this.#wakesAt) return;
    this.#timer?.cancel();
    this.#wakesAt = atMs;
    const clock = this.clock;
    this.#timer = clock.timer(Math.max(0, atMs - clock.monotonic()), () => {
      this.#wakesAt = NEVER;
      this.#check(clock.monotonic());
      this.#wakeAt(Math.min(this.#totalAt, this.#headersAt, this.#idleAt, this.#floorAt));
    });
  }

  /** Ends the attempt if one of its deadlines has passed. */
  #check(now: number): void {
    const { headersTimeoutMs, idleTimeoutMs, totalTimeoutMs } = this.options;
    if (now >= this.#headersAt)
      this.#end('headers-timeout', `no headers within ${durationText(headersTimeoutMs)}`);
    else if (now >= this.#idleAt)
      this.#end('idle-timeout', `no byte of the body within ${durationText(idleTimeoutMs)}`);
    else if (now >= this.#floorAt) this.#checkFloor(now);
    if (now < this.#totalAt) return;
    // Pauses of this machine are not the fault of the host.
    const pausedMs = this.#pausedUntil(now);
    const heldUpMs = pausedMs - this.#grantedMs;
    this.#grantedMs = pausedMs;
    if (heldUpMs > 0) this.#totalAt = now + heldUpMs;
    else this.#end('total-timeout', `not complete within ${durationText(totalTimeoutMs)}`);
  }

  see(sign: Sign, value: number): void {
    switch (sign) {
      case 'sent':
      case 'uploading':
        this.#endPause();
        this.#waitForHeaders();
        return;
      case 'resumed':
        this.#endPause();
        this.#watchBody();
        return;
      case 'headers':
        this.#watchBody();
        return;
      case 'bytes':
        this.#bytes += value;
        // Bytes may arrive in a pause: not every body can be held back.
        if (this.#pausedSince === undefined)
          this.#idleAt = this.clock.monotonic() + this.options.idleTimeoutMs;
        return;
      case 'paused':
        // The disk is slow or `--bwlimit` applies, which is not the fault of the host.
        this.#pausedSince ??= this.clock.monotonic();
        this.#headersAt = this.#idleAt = this.#floorAt = NEVER;
    }
  }

  #end(code: ErrorCode, text: string): void {
    this.#totalAt = this.#headersAt = this.#idleAt = this.#floorAt = NEVER;
    this.expire(code, text);
  }

  #checkFloor(now: number): void {
    if (this.#bytes < FLOOR_BYTES) {
      this.#end('too-slow', `only ${this.#bytes} bytes in ${durationText(FLOOR_MS)}`);
      return;
    }
    this.#bytes = 0;
    this.#floorAt = now + FLOOR_MS;
  }

  /** Milliseconds in which this machine delayed the body. */
  #pausedUntil(now: number): number {
    return this.#pausedMs + (this.#pausedSince === undefined ? 0 : now - this.#pausedSince);
  }

  #endPause(): void {
    this.#pausedMs = this.#pausedUntil(this.clock.monotonic());
    this.#pausedSince = undefined;
  }

  #waitForHeaders(): void {
    this.#headersAt = this.clock.monotonic() + this.options.headersTimeoutMs;
    this.#idleAt = this.#floorAt = NEVER;
    this.#wakeAt(this.#headersAt);
  }

  #watchBody(): void {
    const now = this.clock.monotonic();
    this.#headersAt = NEVER;
    this.#idleAt = now + this.options.idleTimeoutMs;
    this.#floorAt = now + FLOOR_MS;
    this.#bytes = 0;
    this.#wakeAt(Math.min(this.#idleAt, this.#floorAt));
  }
}

// The ends of attempts before their answers.

/** The end of one attempt: a deadline has passed, or the signal of its request has aborted. */
class Expiry {
  #over: { readonly reason: unknown } | undefined;
  #onOver: ((reason: unknown) => void) | undefined;

  /** Ends the attempt. Only the first reason counts. */
  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    this.#onOver?.(reason);
  }

  /** Calls `act` at the end of the attempt, at once if it is over. A later call replaces `act`, because an attempt has one exchange at a time. */
  onOver(act: (reason: unknown) => void): void {
    this.#onOver = act;
    if (this.#over !== undefined) act(this.#over.reason);
  }
}

/** Ends attempts when the signal of their request aborts. All attempts share one listener, because Node searches the listeners of a signal one by one. */
export class Expiries {
  readonly #running = new Map<
    AbortSignal,
    { readonly attempts: Set<Expiry>; readonly onAbort: () => void }
  >();

  /** `outer` has not aborted. `release` must follow, because `outer` outlives the attempt. */
  begin(outer: AbortSignal): Expiry {
    const { attempts } = this.#running.get(outer) ?? this.#listen(outer);
    const expiry = new Expiry();
    attempts.add(expiry);
    return expiry;
  }

  release(outer: AbortSignal, expiry: Expiry): void {
    const running = this.#running.get(outer);
    if (running?.attempts.delete(expiry) !== true || running.attempts.size > 0) return;
    outer.removeEventListener('abort', running.onAbort);
    this.#running.delete(outer);
  }

  #listen(outer: AbortSignal) {
    const attempts = new Set<Expiry>();
    const onAbort = (): void => {
      for (const expiry of attempts) expiry.end(outer.reason);
    };
    outer.addEventListener('abort', onAbort);
    const running = { attempts, onAbort };
    this.#running.set(outer, running);
    return running;
  }
}
