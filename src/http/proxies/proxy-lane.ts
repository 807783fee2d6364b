/** The lane of one of several proxies: whether the proxy works, and when it gets a request again. */
import type { Clock } from '../../model/clock.js';
import type { CryptodlError } from '../../model/errors.js';
import type { Observer } from '../../model/observer.js';
import { durationText } from '../../model/units.js';
import type { Fetch, FetchRequest } from '../../model/fetch.js';

interface Lane {
  /** Host and port of the proxy. */
  readonly label: string;
  readonly fetch: Fetch;
  /** Milliseconds before the lane may send this request: a pause after a refusal, or a ban. */
  readonly pauseMs: (request: FetchRequest) => Promise<number>;
}

export interface SpreadOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly lanes: readonly Lane[];
  /** For hosts that NO_PROXY lists. */
  readonly direct: Fetch;
  readonly isDirect: (url: string) => boolean;
  readonly observer: Pick<Observer, 'event' | 'warn'>;
}

export type ProxyFigures = Readonly<ProxyLane['figures']>;

const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 300_000;

export class ProxyLane {
  inFlight = 0;
  /** Requests that were sent through it, also to a proxy that did not work. */
  requests = 0;
  /** Requests that failed because the proxy did not work. */
  failures = 0;
  /** Requests that a host refused for the address of this proxy. */
  refusals = 0;
  /** Failures since the last answer. Requests that were in flight together count as one. */
  inARow = 0;
  isProbed = false;
  /** On the monotonic clock. */
  #pausedUntil = 0;
  error: CryptodlError | undefined;
  #deadUntil = 0;

  constructor(
    readonly lane: Lane,
    readonly options: SpreadOptions,
  ) {}

  /** `pausedMs`: what is left of its longest pause or ban: a host has refused the address of this proxy. */
  get figures() {
    const { requests, failures, refusals, error } = this;
    const pausedMs = Math.max(0, this.#pausedUntil - this.options.clock.monotonic());
    return { proxy: this.lane.label, requests, failures, refusals, isDead: error !== undefined, pausedMs };
  }

  get leftMs(): number {
    return Math.max(0, this.#deadUntil - this.options.clock.monotonic());
  }

  get isUsable(): boolean {
    return this.error === undefined || (this.leftMs === 0 && !this.isProbed);
  }

  /** Milliseconds before it may send this request. */
  async pauseMs(request: FetchRequest): Promise<number> {
    const leftMs = await this.lane.pauseMs(request);
    if (leftMs > 0) this.#pausedUntil = Math.max(this.#pausedUntil, this.options.clock.monotonic() + leftMs);
    return leftMs;
  }

  /** An answer to a request that the proxy got before it was taken out does not say that it works now. */
  onAnswer(isProbe: boolean): void {
    if (!isProbe) return;
    this.inARow = 0;
    this.error = undefined;
    const { observer } = this.options;
    const { label } = this.lane;
    observer.event('proxy', { proxy: label, state: 'alive' });
    observer.warn(`the proxy ${label} works again`);
  }

  onDead(error: CryptodlError, isProbe: boolean): void {
    this.failures += 1;
    if (this.error !== undefined && !isProbe) return;
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** this.inARow, LONGEST_DELAY_MS);
    this.inARow += 1;
    this.#deadUntil = this.options.clock.monotonic() + delayMs;
    this.error = error;
    const { observer } = this.options;
    const { label } = this.lane;
    const { proxyFault: reason = error.message } = error;
    observer.event('proxy', { proxy: label, state: 'dead', reason, delayMs });
    if (isProbe) return;
    observer.warn(
      `the proxy ${label} is taken out, and gets a request again in ${durationText(delayMs)}: it ${reason}`,
    );
  }
}
