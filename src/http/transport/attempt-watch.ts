/** The deadlines of one attempt on the monotonic clock. */
import type { Clock, Timer } from '../../model/clock.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Sign } from '../../model/fetch.js';
import { durationText } from '../../model/units.js';

export interface Deadlines {
  readonly headersTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Base of the total timeout. For each 16 KiB of the expected and of the sent body, one second is added. */
  readonly totalTimeoutMs: number;
}
/** An attempt ends if it receives fewer than `FLOOR_BYTES` of its body in `FLOOR_MS` milliseconds. */
const FLOOR_BYTES = 30 * 1024;
const FLOOR_MS = 30_000;
const NEVER = Number.POSITIVE_INFINITY;

export class Watch {
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

  /** Moves the deadlines when the attempt makes progress. */
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
